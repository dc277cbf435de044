// The next job of an endpoint with FlashBoot whose worker is frozen, against the same worker's cold start.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { root } from "../../scripts/set-up.mjs";
import { entry, unmeasured } from "../entries.mjs";
import { reach } from "../processes.mjs";
import { interleave, quantile } from "../rounds.mjs";

/** Jobs come at any time, and rarely at the moment of the freeze, when the server is busy with it. */
const restMs = 300;
const input = { name: "bench" };
const resumes = 30;
const most = { must: 50, aim: 10 };
const settings = { idleTimeout: 1, workersMin: 0, workersMax: 1 };
const folder = join(root, "bench/handlers/concurrent");
const stockFolder = join(root, "bench/handlers/stock");

export const row = {
  name: "resume",
  words: "a job for a worker that FlashBoot has frozen, against the cold start of the same worker",
  async measure({ services, databases, rounds, isQuick, onRound, scope }) {
    const { engine, why } = await engineOf(scope);
    const kinds = [...kindsHere(engine)];
    const entries = [];
    for (const database of databases) {
      const env = engine ? { DOCKER_HOST: engine.host } : {};
      const server = await services.startMillrace(scope, database, { env });
      for (const kind of kinds) {
        const say = (words) => onRound(`${database}, ${kind.name}, ${words}`);
        entries.push(...(await measureKind(server, database, kind, isQuick ? 10 : resumes, rounds, say)));
      }
      if (!engine) entries.push(unmeasured(database, "container", why));
    }
    return entries;
  },
};

async function engineOf(scope) {
  try {
    const engine = await startDocker();
    scope.defer(() => engine.end());
    return { engine };
  } catch (error) {
    return { why: error.message.split("\n")[0].slice(0, 200) };
  }
}

function* kindsHere(engine) {
  yield { name: "process, our SDK", image: folder };
  const venv = process.env.MILLRACE_TEST_VENV ?? join(root, ".cache/venv");
  const python = join(venv, "bin/python");
  if (existsSync(python)) {
    yield {
      name: "process, stock Python",
      image: stockFolder,
      template: { dockerStartCmd: [python, "-u", "handler.py"] },
    };
  }
  if (engine) {
    const image = makeNodeImage(engine, "millrace-bench/sdk:1", { handler: join(folder, "handler.mjs") });
    yield { name: "container, our SDK", image };
  }
}

/** The frozen worker's rounds and, with every sixth of them, one cold start of the same worker. */
async function measureKind(server, database, { name, image, template }, count, rounds, onRound) {
  const frozen = await server.makeEndpoint(image, { ...settings, flashboot: true }, template);
  const cold = await server.makeEndpoint(image, settings, template);
  await runsync(server, frozen);
  const times = { resumed: [], cold: [] };
  const some = Math.ceil(count / rounds);
  await interleave(
    {
      resumed: async () => {
        for (let n = 0; n < some; n++) times.resumed.push(await resumed(server, frozen));
      },
      cold: async () => {
        times.cold.push(await started(server, cold));
      },
    },
    { rounds, onRound, warmUps: 0 },
  );
  for (const endpoint of [frozen, cold]) await server.call("DELETE", `/sdk/v1/endpoints/${endpoint}`);
  const of = (side, field) => times[side].map((time) => time[field]);
  const line = (what, field, share, bounds) => {
    const value = quantile(of("resumed", field), share);
    const against = "cold start, median";
    const theirs = of("cold", field);
    return entry({
      ...{ database, what: `${name}: ${what}, p${share * 100} of ${times.resumed.length}`, unit: "ms" },
      ...{ ours: of("resumed", field), theirs, against, figure: { value, unit: "ms" } },
      ...(bounds ? { most: bounds } : {}),
    });
  };
  return [
    line("submission to take", "delayMs", 0.5, most),
    line("submission to take", "delayMs", 0.99),
    line("the whole /runsync", "wholeMs", 0.5),
    line("the whole /runsync", "wholeMs", 0.99),
  ];
}

/** Runs one job on a frozen worker. */
async function resumed(server, endpoint) {
  const workers = () => server.call("GET", `/v1/endpoints/${endpoint}/workers`);
  const isFrozen = (worker) => worker.state === "paused" && worker.timeline.some(({ phase }) => phase === "paused");
  const [before] = await reach("a frozen worker", async () => {
    const live = await workers();
    // The row says so before the process is frozen; the timeline shows both phases.
    return live.length === 1 && isFrozen(live[0]) && live;
  });
  await sleep(restMs);
  const time = await runsync(server, endpoint);
  if (time.workerId !== before.id) throw new Error("Another worker ran the frozen worker's job.");
  return time;
}

/** Runs one job on an endpoint without a worker. */
async function started(server, endpoint) {
  await reach("no worker", async () => (await server.call("GET", `/v1/endpoints/${endpoint}/workers`)).length === 0);
  return runsync(server, endpoint);
}

async function runsync(server, endpoint) {
  const beganAt = performance.now();
  const job = await server.call("POST", `/v2/${endpoint}/runsync`, { input });
  const wholeMs = performance.now() - beganAt;
  if (job.status !== "COMPLETED") throw new Error(`The job is ${job.status}: ${job.error ?? ""}`);
  return { wholeMs, delayMs: job.delayTime, workerId: job.workerId };
}
