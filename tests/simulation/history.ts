import { rollBack } from "../../packages/server/src/operations/endpoints/releases.js";
import { deleteEndpoint, ownEndpoint } from "../../packages/server/src/operations/endpoints/save-endpoint.js";
import { drain, manage, save, unfinished } from "./drain.js";
import { away } from "./host.js";
import { expiryOf } from "./known.js";
import type { Script, Step } from "./steps.js";
import { Violated, type Violation } from "./violation.js";
import { World } from "./world.js";

export interface Outcome {
  readonly violation: Violation | undefined;
  readonly trace: readonly string[];
}

/** Runs one history to its end, or to the first violation. */
export async function runHistory(script: Script, directory: string): Promise<Outcome> {
  const world = await World.create(script, directory);
  try {
    await world.open();
    for (const step of script.steps) {
      world.note(`step: ${JSON.stringify(step)}`);
      await take(world, step);
      if (step.together) continue;
      await world.settle();
      await world.checkAll(false);
    }
    await world.settle();
    await drain(world);
  } catch (error) {
    if (!(error instanceof Violated)) throw error;
  } finally {
    await world.close();
  }
  return { violation: world.violation, trace: world.trace };
}

const pickFrom = <T>(list: readonly T[], pick: number): T | undefined => list[pick % Math.max(1, list.length)];

/** Begins a step; its consequences follow by themselves. */
async function take(world: World, step: Step): Promise<void> {
  const { clients, host } = world;
  const job = () => pickFrom(clients.jobs, "pick" in step ? step.pick : 0);
  const endpoint = () => pickFrom(world.endpoints, "at" in step ? step.at : 0);
  const worker = () => pickFrom(host.alive, "pick" in step ? step.pick : 0);
  const withJob = (act: (id: string, endpointId: string) => Promise<void>) => {
    const found = job();
    if (found) void act(found.id, found.endpointId);
  };
  const withEndpoint = (act: (found: { id: string; no: number }) => Promise<void>) => {
    const found = endpoint();
    if (found) void act(found);
  };
  switch (step.do) {
    case "submit":
      return withEndpoint(({ id }) => clients.submit(step, id));
    case "repeat": {
      const submission = pickFrom(
        clients.submissions.filter(({ key }) => key),
        step.pick,
      );
      if (submission) void clients.send(submission);
      return;
    }
    case "misuse key": {
      const submission = pickFrom(
        clients.submissions.filter(({ jobId }) => jobId),
        step.pick,
      );
      if (submission) void clients.misuseKey(submission);
      return;
    }
    case "cancel":
      return withJob((id, at) => clients.cancel(id, at));
    case "retry":
      return withJob((id, at) => clients.retry(id, at));
    case "wait":
      return withJob((id, at) => clients.wait(id, at, step.ms));
    case "impatient": {
      const leave = new AbortController();
      void world.outside.sleep(step.ms).then(() => leave.abort());
      return withJob((id, at) => clients.wait(id, at, 60_000, leave.signal));
    }
    case "ttl":
      return withJob((id, at) => clients.ttl(id, at, step.ms));
    case "stream":
      return withJob((id, at) => clients.stream(id, at, false));
    case "lose stream":
      return withJob((id, at) => clients.stream(id, at, true));
    case "health":
      return withEndpoint(({ id }) => clients.health(id));
    case "purge":
      return withEndpoint(({ id }) => clients.purge(id));
    case "create endpoint":
      if (world.endpoints.length < 3) void world.createEndpoint({ workersMax: 1 });
      return;
    case "save endpoint":
      return withEndpoint(({ id }) => save(world, id, step.input));
    case "delete endpoint":
      return withEndpoint((found) => remove(world, found));
    case "crash worker": {
      const found = worker();
      if (found) host.end(found.id, { signal: "SIGSEGV" });
      return;
    }
    case "hang worker":
      return worker()?.hang();
    case "freeze worker": {
      const found = worker();
      found?.freeze();
      void world.outside.sleep(step.ms).then(() => found?.thaw());
      return;
    }
    case "sicken":
      return world.sicken(step.ms);
    case "fail start":
      return host.failNext("start", "there is no room for it");
    case "release": {
      const env = { VERSION: step.version, ...(step.fails ? { FAILS: "1" } : {}) };
      return withEndpoint(({ id }) => save(world, id, { env }));
    }
    case "roll back":
      return withEndpoint(({ id, no }) => {
        const n = 1 + (step.pick % (world.fleet.endpoints.get(no)?.version ?? 1));
        return manage(world, ({ parts, admin }) => rollBack(parts, admin, id, n));
      });
    case "lose gpu":
      return void world.outside.sleep(step.ms).then(world.machine.loseGpu(step.pick));
    case "hang driver":
      world.machine.blind(true);
      return void world.outside.sleep(step.ms).then(() => world.machine.blind(false));
    case "kill server":
      return world.killServer(step.calls, step.downMs);
    case "kill freezing server":
      return host.onNextFreeze(() => world.isCalm || world.killServer(step.calls, step.downMs));
    case "fail freeze":
      return host.failNext(step.verb, away);
    case "stop server":
      return world.stopServer(step.downMs);
    case "freeze server":
      return world.freezeServer(step.ms);
    case "suspend":
      return world.suspend(step.ms);
    case "pass":
      return world.pass(step.ms);
    case "next timer":
      return world.nextTimer();
  }
}

const remove = (world: World, { id, no }: { id: string; no: number }) =>
  manage(world, async ({ parts, admin }) => {
    world.clients.willAsk("delete", no);
    await deleteEndpoint(parts, admin, ownEndpoint(parts, admin, id), { setToZero: true });
    for (const job of unfinished(world))
      if (job.endpointNo === no && expiryOf(job) > world.now())
        world.broken("deletion ends everything", `${job.id} is ${job.status}`);
  });
