import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeRunning } from "../e2e/handlers.js";
import { FakeNvidiaSmi, fakeGpu } from "../gpu/fake-nvidia-smi.js";
import { call, until } from "../harness.js";
import { type Cluster, type Member, startCluster } from "./cluster.js";

let cluster: Cluster;
let plain: Member;
let withGpus: Member;
let fake: FakeNvidiaSmi;
beforeAll(async () => {
  cluster = await startCluster(0);
  plain = await cluster.join();
  await cluster.settled();
  fake = new FakeNvidiaSmi({ gpus: [fakeGpu(0), fakeGpu(1)] });
  withGpus = await cluster.join({ PATH: fake.path });
  await cluster.settled();
});
afterAll(async () => {
  await cluster?.end();
  fake?.remove();
});

const workersOf = async (server: Member, endpoint: string) =>
  (await call(server, "GET", `/v1/endpoints/${endpoint}/workers`)).body as {
    id: string;
    state: string;
    why?: string;
    gpus: { id: string }[];
  }[];
const hostOf = async (workerId: string) => {
  const [row] = await cluster.query<{ host_no: number }>("SELECT host_no FROM worker WHERE id = $1", [workerId]);
  return row?.host_no;
};
const runsync = async (server: Member, endpoint: string) =>
  (await call(server, "POST", `/v2/${endpoint}/runsync`, { input: { echo: "here" } })).body;

describe("servers on one database", () => {
  it("give out GPUs on the host that has them, each to one worker, even if another server decides", async (test) => {
    expect((await cluster.ownerOf("scale"))?.hostNo).toBe(plain.hostNo);
    const endpoints: string[] = [];
    for (let n = 0; n < 3; n++) {
      endpoints.push(await makeRunning(test, plain, { workersMin: 1, workersMax: 1, gpuTypeIds: ["NVIDIA L4"] }));
    }
    const found = await until(async () => {
      const all = (await Promise.all(endpoints.map((id) => workersOf(plain, id)))).flat();
      return (
        all
          .map(({ state }) => state)
          .sort()
          .join() === "idle,idle,throttled" && all
      );
    }, 40_000);
    const placed = found.filter(({ gpus }) => gpus.length > 0);
    expect(placed.map(({ gpus }) => gpus[0]?.id).sort()).toEqual([fakeGpu(0).uuid, fakeGpu(1).uuid]);
    for (const { id } of placed) expect(await hostOf(id)).toBe(withGpus.hostNo);
    const [waiting] = found.filter(({ state }) => state === "throttled");
    expect(waiting?.why).toContain("free here: 0 of 2");
    const first = endpoints.find((_, n) => found[n] && placed.includes(found[n]));
    await call(withGpus, "PATCH", `/v1/endpoints/${first}`, { workersMin: 0, workersMax: 0 });
    const freed = await until(async () => {
      const all = (await Promise.all(endpoints.map((id) => workersOf(withGpus, id)))).flat();
      return all.find(({ id, state }) => id === waiting?.id && state === "idle");
    }, 40_000);
    expect(freed.gpus).toHaveLength(1);
  });

  it("pause and resume a worker of one host for a job that another host received", async (test) => {
    const endpoint = await makeRunning(test, plain, { flashboot: true, idleTimeout: 1, workersMax: 1 });
    expect(await runsync(plain, endpoint)).toMatchObject({ status: "COMPLETED", output: "here" });
    const [worker] = await workersOf(plain, endpoint);
    for (const server of [withGpus, plain, withGpus]) {
      await until(async () => {
        const [now] = await workersOf(server, endpoint);
        const [row] = await cluster.query<{ at: number | null }>(
          "SELECT paused_at AS at FROM worker WHERE id = $1 AND (resumed_at IS NULL OR resumed_at < paused_at)",
          [worker!.id],
        );
        return now?.state === "paused" && row?.at;
      }, 20_000);
      expect(await runsync(server, endpoint)).toMatchObject({
        status: "COMPLETED",
        output: "here",
        workerId: worker!.id,
      });
    }
  });
});
