import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { call, journal, until } from "../harness.js";
import { podsOf } from "../pods/pod-calls.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";

/** Notes each start, with the pod's id and its process. */
const program = `
import { appendFileSync } from "node:fs";
appendFileSync(process.env.JOURNAL, process.env.RUNPOD_POD_ID + " " + process.pid + "\\n");
process.on("SIGTERM", () => process.exit(0));
setInterval(() => {}, 60_000);
`;

let folder: string;
let cluster: Cluster;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-pods-"));
  writeFileSync(join(folder, "main.mjs"), program);
  cluster = await startCluster(2, { MILLRACE_STOP_GRACE: "5" });
});
afterAll(async () => {
  await cluster?.end();
  rmSync(folder, { recursive: true, force: true });
});

const journalOf = (id: string) => journal(join(folder, "starts")).filter((line) => line.startsWith(id));
const local = () => ({
  imageName: folder,
  dockerStartCmd: [process.execPath, "main.mjs"],
  env: { JOURNAL: join(folder, "starts") },
});
const hostOf = async (id: string): Promise<Member> => {
  const query = `SELECT host_no FROM worker JOIN endpoint ON endpoint.no = worker.endpoint_no
    WHERE endpoint.id = $1 AND worker.ended_at IS NULL`;
  const [row] = await until(async () => {
    const rows = await cluster.query<{ host_no: number }>(query, [id]);
    return rows.length > 0 && rows;
  });
  return cluster.members.find(({ hostNo }) => hostNo === row?.host_no) as Member;
};
/** When a host was last heard of. */
const seenAt = async ({ hostNo }: Member): Promise<number> => {
  const [row] = await cluster.query<{ seen_at: number }>("SELECT seen_at FROM host WHERE no = $1", [hostNo]);
  return row?.seen_at ?? 0;
};
const otherThan = (member: Member) => cluster.members.find((each) => each !== member) as Member;

describe("A pod of several servers", () => {
  it("is the same on each of them from the moment it is made, and may be stopped over any", async () => {
    const [one, two] = cluster.members as [Member, Member];
    const { id } = await podsOf(one).create({ ...local(), volumeInGb: 0 });
    expect((await podsOf(two).show(id)).id).toBe(id);
    await podsOf(two).until(id, ({ status }) => status === "RUNNING");
    await until(() => journalOf(id).length === 1);
    expect(await podsOf(two).act(id, "stop")).toMatchObject({ desiredStatus: "EXITED" });
    await podsOf(one).until(id, ({ status, statusDetail }) => status === "EXITED" && statusDetail === undefined);
    await podsOf(one).remove(id);
    const gone = () => call(two, "GET", `/v1/pods/${id}`);
    await until(async () => (await gone()).status === 404);
  });

  it("without a volume moves to another host if its own is lost", async () => {
    const [one] = cluster.members as [Member, Member];
    const { id } = await podsOf(one).create({ ...local(), volumeInGb: 0 });
    await until(() => journalOf(id).length === 1);
    const host = await hostOf(id);
    const other = otherThan(host);
    await host.kill();
    await until(() => journalOf(id).length === 2, 90_000);
    expect(await hostOf(id)).toBe(other);
    await host.restart(); // it ends what it still runs
    const [first] = journalOf(id).map((line) => Number(line.split(" ")[1]));
    await until(() => !existsSync(`/proc/${first}`), 60_000);
    await podsOf(other).until(id, ({ status }) => status === "RUNNING");
    expect(journalOf(id)).toHaveLength(2);
    await podsOf(other).remove(id);
  });

  it("with a volume waits for the host that has it", async () => {
    await cluster.settled();
    const [one] = cluster.members as [Member, Member];
    const { id } = await podsOf(one).create({ ...local(), volumeInGb: 1 });
    await until(() => journalOf(id).length === 1);
    const host = await hostOf(id);
    const other = otherThan(host);
    const volume = join(host.dataDir, "volumes", `pod-${id}`);
    expect(existsSync(volume)).toBe(true);
    await podsOf(other).act(id, "stop");
    await podsOf(other).until(id, ({ statusDetail }) => statusDetail === undefined);
    await host.kill();
    await until(async () => Date.now() > (await seenAt(host)) + 2 * limits.leaseMs, 60_000);
    await podsOf(other).act(id, "start");
    await podsOf(other).until(id, ({ statusDetail }) => /host that is away/.test(statusDetail ?? ""));
    await host.restart();
    await podsOf(other).until(id, ({ status }) => status === "RUNNING");
    expect(await hostOf(id)).toBe(host);
    await podsOf(other).remove(id);
  });
});
