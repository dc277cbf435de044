import { afterAll, beforeAll, expect, it } from "vitest";
import { endWith } from "../e2e/handlers.js";
import { statusOf } from "../e2e/wire.js";
import type { Run } from "../faults/audit/run-journal.js";
import { isAlive } from "../faults/machine/processes.js";
import { Scene } from "../faults/scene.js";
import { call, until } from "../harness.js";
import { ask, type Cluster, type Member, startCluster } from "./cluster.js";
import { Load } from "./load.js";

let cluster: Cluster;
let scene: Scene;
beforeAll(async () => {
  scene = new Scene();
  cluster = await startCluster(2);
});
afterAll(async () => {
  await cluster?.end();
  scene?.end();
});

/** Ends every connection of our servers. */
const endConnections = () =>
  ask(
    cluster.postgres.url(),
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'millrace%'",
  );

/** Waits until `more` further submissions were acknowledged: the service has recovered by itself. */
async function goesOn(load: Load, more = 10): Promise<void> {
  const before = load.acknowledged().length;
  await until(() => load.acknowledged().length >= before + more, 60_000);
}

const overlap = (a: Run, b: Run): boolean =>
  a.startedAt < (b.endedAt ?? b.startedAt) && b.startedAt < (a.endedAt ?? a.startedAt);

it("a database that restarts, crashes and drops connections under load costs only time", {
  timeout: 240_000,
}, async (test) => {
  const { members, postgres } = cluster;
  const [here] = members as [Member, Member];
  const pids = members.map(({ pid }) => pid);
  const { endpoint } = await scene.own(here, { workersMin: 2, workersMax: 2, idleTimeout: 10 }, 4);
  endWith(test, here, endpoint);
  await until(async () => (await call(here, "GET", `/v2/${endpoint}/health`)).body.workers.idle === 2, 60_000);
  const load = new Load(members, endpoint);
  load.start(4);
  test.onTestFinished(() => load.stop());
  await goesOn(load);
  for (const crash of ["SIGINT", "SIGQUIT", "SIGKILL"] as const) {
    await postgres.stop(crash);
    await postgres.start();
    await goesOn(load, 40);
  }
  for (let round = 0; round < 10; round++) {
    await endConnections();
    await goesOn(load, 5);
  }
  // Longer than a client's call waits.
  await postgres.stop();
  await until(() => load.refusals >= 4, 60_000);
  await postgres.start();
  await goesOn(load, 40);
  await load.stop();
  expect(load.complaints).toEqual([]);
  expect(members.map(({ pid }) => pid)).toEqual(pids);
  expect(pids.every(isAlive)).toBe(true);

  const jobs = load.acknowledged().map(({ key, ids }) => {
    expect([...ids], key).toHaveLength(1);
    return [...ids][0] as string;
  });
  await until(async () => {
    const { jobs: counts } = (await call(here, "GET", `/v2/${endpoint}/health`)).body;
    return counts.inQueue === 0 && counts.inProgress === 0;
  }, 60_000);
  const runs = new Map<string, Run[]>();
  for (const run of scene.runs()) runs.set(run.job, [...(runs.get(run.job) ?? []), run]);
  let again = 0;
  for (const [n, job] of jobs.entries()) {
    const { status, output } = await statusOf(members[n % 2] as Member, endpoint, job);
    const own = runs.get(job) ?? [];
    expect({ job, status, run: own.some(({ run }) => run === output?.run) }).toEqual({
      job,
      status: "COMPLETED",
      run: true,
    });
    for (const [at, run] of own.entries()) expect(own.slice(at + 1).some((later) => overlap(run, later))).toBe(false);
    again += own.length - 1;
  }
  expect([...runs.keys()].sort()).toEqual([...jobs].sort()); // every job that ran is known to a client
  console.log(`${jobs.length} jobs, ${load.refusals} temporary refusals, ${again} more runs than jobs`);
});
