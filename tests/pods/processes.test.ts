import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { call, journal, startServer, type TestServer, until } from "../harness.js";
import { podsOf } from "./pod-calls.js";

/** Counts its own starts in its volume, says so, and stays until it is told to stop, or ends with the code it is given. */
const program = `
import { appendFileSync, existsSync } from "node:fs";
const { RUNPOD_VOLUME_PATH: volume, RUNPOD_POD_ID: id, ENDS } = process.env;
appendFileSync(volume + "/starts", id + " " + process.pid + "\\n");
console.log("pod " + id + " is up with " + process.env.TOKEN);
if (ENDS) process.exit(Number(ENDS));
process.on("SIGTERM", () => process.exit(0));
setInterval(() => {}, 60_000);
`;

let folder: string;
let postgres: TestPostgres;
let servers: Record<"SQLite" | "PostgreSQL", TestServer>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "millrace-pod-"));
  writeFileSync(join(folder, "main.mjs"), program);
  postgres = await startPostgres();
  const start = (env: Record<string, string>) =>
    startServer({ MILLRACE_STOP_GRACE: "5", ...env }, { podVolumesGapMs: 200, crashPauseMsMin: 100 });
  const [onSqlite, onPostgres] = await Promise.all([
    start({}),
    start({ MILLRACE_DATABASE_URL: postgres.url(), MILLRACE_SEAL_KEY: "5ea1".repeat(16) }),
  ]);
  servers = { SQLite: onSqlite, PostgreSQL: onPostgres };
});
afterAll(async () => {
  await Promise.all(Object.values(servers ?? {}).map((server) => server.end()));
  await postgres?.end();
  rmSync(folder, { recursive: true, force: true });
});

const local = () => ({ imageName: folder, dockerStartCmd: [process.execPath, "main.mjs"], volumeInGb: 1 });
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const pidOf = (line: string | undefined) => Number(line?.split(" ")[1]);

/** A server's pods, with what it keeps of them on its machine. */
function podsAt(server: TestServer) {
  const pods = podsOf(server);
  const volumeOf = (id: string) => join(server.dataDir, "volumes", `pod-${id}`);
  const startsOf = (id: string) => journal(join(volumeOf(id), "starts"));
  const up = (id: string, starts: number) =>
    until(async () => (await pods.show(id)).status === "RUNNING" && startsOf(id).length === starts && startsOf(id));
  return { server, pods, volumeOf, startsOf, up };
}

describe.each(["SQLite", "PostgreSQL"] as const)("A pod that is a local process, on %s,", (database) => {
  it("stays through a kill of its server, keeps its volume over a stop, and leaves nothing behind", async () => {
    const { server, pods, volumeOf, startsOf, up } = podsAt(servers[database]);
    const secret = { name: `token_${process.pid}`, value: "a-secret-value" };
    expect((await call(server, "POST", "/v1/secrets", secret)).status).toBe(200);
    const { id } = await pods.create({ ...local(), env: { TOKEN: `{{ RUNPOD_SECRET_${secret.name} }}` } });
    const [first] = await up(id, 1);
    expect(first).toBe(`${id} ${pidOf(first)}`);

    const listed = async () =>
      (await call(server, "GET", "/v1/pods?desiredStatus=RUNNING")).body.map((pod: { id: string }) => pod.id);
    expect(await listed()).toContain(id);

    await server.kill();
    expect(isAlive(pidOf(first))).toBe(true);
    await server.restart();
    await until(async () => (await pods.show(id)).status === "RUNNING");
    expect([startsOf(id).length, isAlive(pidOf(first))]).toEqual([1, true]);

    const log = await until(async () => {
      const reply = await fetch(`${server.url}/v1/pods/${id}/logs`, {
        headers: { authorization: `Bearer ${server.key}` },
      });
      const text = await reply.text();
      return text.includes("is up") && text;
    });
    expect(log).toContain(`pod ${id} is up with `);
    expect(log).not.toContain(secret.value);

    expect(await pods.act(id, "stop")).toMatchObject({ desiredStatus: "EXITED" });
    await until(() => !isAlive(pidOf(first)));
    expect(existsSync(volumeOf(id))).toBe(true);
    await pods.act(id, "start");
    const [, second] = await up(id, 2);

    await pods.act(id, "restart");
    const [, , third] = await up(id, 3);
    await until(() => !isAlive(pidOf(second)));

    process.kill(pidOf(third), "SIGKILL");
    const [, , , fourth] = await up(id, 4);
    await pods.act(id, "reset");
    const [, , , , fifth] = await up(id, 5);
    await until(() => !isAlive(pidOf(fourth)));
    expect(await listed()).toContain(id);
    await pods.remove(id);
    await until(() => !isAlive(pidOf(fifth)) && !existsSync(volumeOf(id)));
    expect(await listed()).not.toContain(id);
  });

  it("that keeps ending says how, and runs when it is repaired", async () => {
    const { server, pods, volumeOf } = podsAt(servers[database]);
    const { id } = await pods.create({ ...local(), env: { ENDS: "3" } });
    const failing = await pods.until(
      id,
      ({ status, statusDetail }) => status === "ERROR" && /\b([2-9]|\d\d) times/.test(statusDetail),
    );
    expect(failing.statusDetail).toMatch(/it ended with exit code 3/);
    const { status } = await call(server, "PATCH", `/v1/pods/${id}`, { env: {} });
    expect(status).toBe(200);
    await pods.until(id, (pod) => pod.status === "RUNNING");
    await pods.remove(id);
    await until(() => !existsSync(volumeOf(id)));
    expect(readFileSync(join(folder, "main.mjs"), "utf8")).toBe(program); // only its volume is removed
  });
});
