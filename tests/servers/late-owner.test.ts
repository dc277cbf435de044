import { afterAll, beforeAll, expect, it } from "vitest";
import { makeRunning } from "../e2e/handlers.js";
import { reach, submit } from "../e2e/wire.js";
import { signal } from "../faults/machine/processes.js";
import { until } from "../harness.js";
import { type Cluster, startCluster } from "./cluster.js";
import { type StallingProxy, startStallingProxy } from "./stalling-proxy.js";

let cluster: Cluster;
let proxy: StallingProxy;
beforeAll(async () => {
  cluster = await startCluster(0);
  proxy = await startStallingProxy(cluster.postgres.port);
});
afterAll(async () => {
  await cluster?.end();
  proxy?.end();
});

it("an owner's decisions that arrive after another server has taken over are refused", {
  timeout: 120_000,
}, async (test) => {
  const url = cluster.url.replace(/:\d+\//, `:${proxy.port}/`);
  const late = await cluster.join({ MILLRACE_DATABASE_URL: url });
  await until(async () => (await cluster.ownerOf("scale")) === late);
  const next = await cluster.join();
  const endpoint = await makeRunning(test, next, { workersMax: 1, idleTimeout: 300 });
  const deciding = proxy.holdNext(/insert into "?worker\b/i);
  const job = await submit(next, endpoint, { echo: 1 });
  const decision = await deciding;
  signal(late.pid, "SIGSTOP");
  test.onTestFinished(() => void signal(late.pid, "SIGCONT"));
  await reach(next, endpoint, job, "COMPLETED", 60_000);
  expect(await cluster.ownerOf("scale")).toBe(next);
  await decision.release();
  const workers = () =>
    cluster.query("SELECT host_no FROM worker WHERE endpoint_no = (SELECT no FROM endpoint WHERE id = $1)", [endpoint]);
  expect(await workers()).toHaveLength(1);
  signal(late.pid, "SIGCONT");
  const again = await submit(late, endpoint, { echo: 2 });
  await reach(late, endpoint, again, "COMPLETED", 60_000);
  expect(await workers()).toHaveLength(1);
});
