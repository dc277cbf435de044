// A job on a cold endpoint, against the same worker process started by hand.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../../scripts/set-up.mjs";
import { entry } from "../entries.mjs";
import { makeFolder, reach } from "../processes.mjs";
import { interleave } from "../rounds.mjs";

const example = join(root, "examples/hello");
const runner = join(root, "packages/worker/dist/run-handler.js");
const input = { name: "bench" };

export const row = {
  name: "cold",
  words: "a job on an endpoint without a worker, against the worker started by hand",
  async measure({ services, databases, rounds, onRound, scope }) {
    const stub = await startStub();
    scope.defer(() => stub.server.close());
    const home = makeFolder(scope);
    const sides = {};
    const endpoints = [];
    for (const database of databases) {
      const server = await services.startMillrace(scope, database);
      const endpoint = await server.makeEndpoint(example, { idleTimeout: 1, workersMin: 0, workersMax: 1 });
      endpoints.push([server, endpoint]);
      sides[database] = () => cold(endpoints).then(() => throughMillrace(server, endpoint));
    }
    sides.byHand = () => cold(endpoints).then(() => byHand(stub, home));
    // The first round builds the handler.
    const times = await interleave(sides, { rounds: rounds * 2 + 1, onRound });
    return databases.map((database) =>
      entry({
        database,
        what: "cold start of examples/hello, request to result",
        unit: "ms",
        ours: times[database],
        theirs: times.byHand,
        against: "same worker by hand",
        most: { must: 1.3 },
      }),
    );
  },
};

/** Waits until no endpoint has a worker, and the machine has recovered from their end. */
async function cold(endpoints) {
  for (const [server, endpoint] of endpoints) {
    await reach("an endpoint without workers", async () => {
      const { workers } = await server.health(endpoint);
      return workers.initializing + workers.ready + workers.running + workers.idle === 0;
    });
  }
  await sleep(300);
}

async function throughMillrace(millrace, endpoint) {
  const beganAt = performance.now();
  const job = await millrace.call("POST", `/v2/${endpoint}/runsync`, { input });
  const tookMs = performance.now() - beganAt;
  if (job.status !== "COMPLETED") throw new Error(`The job is ${job.status}: ${job.error ?? ""}`);
  return tookMs;
}

/** From the spawn until the stub has read the result; then the worker is ended. */
async function byHand(stub, home) {
  const beganAt = performance.now();
  const child = spawn(process.execPath, [runner, join(example, "handler.ts")], {
    cwd: example,
    detached: true,
    env: stub.environment(home),
    stdio: ["ignore", "pipe", "pipe"],
  });
  for (const pipe of [child.stdout, child.stderr]) pipe.resume();
  await stub.result();
  const tookMs = performance.now() - beganAt;
  child.kill("SIGKILL");
  await once(child, "exit");
  return tookMs;
}

/** Answers the first take of each worker at once with a job, and holds the later ones. */
async function startStub() {
  let heard;
  const server = createServer(async (request, reply) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    if (request.url.includes("/job-done/")) {
      reply.end("{}");
      const { output } = JSON.parse(Buffer.concat(parts).toString("utf8"));
      if (output?.greeting !== "Hello, bench!") throw new Error("The worker's result is not the example's.");
      heard?.resolve();
    } else if (request.url.includes("/job-take/") && heard?.isGiven === false) {
      heard.isGiven = true;
      reply.setHeader("content-type", "application/json").end(JSON.stringify({ id: "by-hand-u1", input }));
    } else if (request.url.includes("/ping/")) reply.end("{}");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const calls = `http://127.0.0.1:${server.address().port}/v2/endpoint0bench`;
  const query = "?gpu=cpu&token=secret-of-the-worker";
  return {
    server,
    result: () => new Promise((resolve) => (heard = { resolve, isGiven: false })),
    environment: (home) => ({
      PATH: process.env.PATH,
      HOME: home,
      RUNPOD_POD_ID: "worker00bench0",
      RUNPOD_ENDPOINT_ID: "endpoint0bench",
      RUNPOD_AI_API_KEY: "secret-of-the-worker",
      RUNPOD_WEBHOOK_GET_JOB: `${calls}/job-take/$ID${query}`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${calls}/job-done/$RUNPOD_POD_ID/$ID${query}`,
      RUNPOD_WEBHOOK_POST_STREAM: `${calls}/job-stream/$RUNPOD_POD_ID/$ID${query}`,
      RUNPOD_WEBHOOK_PING: `${calls}/ping/$RUNPOD_POD_ID`,
      RUNPOD_PING_INTERVAL: "4000",
    }),
  };
}
