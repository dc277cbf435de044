import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { reach, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { type Fuzzing, fuzz, type Verdict } from "./schemathesis.js";

const seed = Number(process.env.MILLRACE_TEST_FUZZ_SEED ?? 1);
const examples = Number(process.env.MILLRACE_TEST_FUZZ_EXAMPLES ?? 7);
const timeout = 600_000; // on a machine that is busy with other tests

/** Returns its input, waits for `hold` milliseconds, or raises an error. */
const handler = `
import { setTimeout as sleep } from "node:timers/promises";
export const options = { concurrency: 16 };
export default async (input, job) => {
  if (input.fail) throw new Error(input.fail);
  if (input.hold) await sleep(input.hold, undefined, { signal: job.signal });
  return input;
};
`;

let receiver: Server;
let webhook: string;
const undos: (() => Promise<void> | void)[] = [];
const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };
beforeAll(async () => {
  receiver = createServer((_request, reply) => reply.end());
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  for (const undo of undos) await undo();
  receiver.close();
});

async function start(env: Record<string, string>): Promise<TestServer> {
  const server = await startServer({ MILLRACE_LOG_LEVEL: "error", ...env });
  ending.onTestFinished(() => server.end());
  return server;
}

/** An endpoint with jobs in every state; one becomes TIMED_OUT during the run. */
async function makeJobs(server: TestServer) {
  const endpoint = await makeEndpoint(server, makeHandler(ending, handler), { workersMin: 1, workersMax: 1 });
  const job = (input: unknown, rest = {}) => submit(server, endpoint, input, rest);
  const [done, failed, cancelled, timedOut, running] = await Promise.all([
    job({ a: [1, null, "x"] }),
    job({ fail: "on purpose" }),
    job({ hold: 8_000 }),
    job({ hold: 60_000 }, { policy: { executionTimeout: 5_000 } }),
    job({ hold: 20_000 }), // long enough to be cancelled
  ]);
  await reach(server, endpoint, done, "COMPLETED");
  await reach(server, endpoint, failed, "FAILED");
  await call(server, "POST", `/v2/${endpoint}/cancel/${cancelled}`);
  return {
    fixed: { "path.endpointId": endpoint },
    known: { "path.jobId": [done, failed, cancelled, timedOut, running] },
  };
}

/** An endpoint with an idle worker, which has run a job and may be paused. */
async function makeLive(server: TestServer) {
  const settings = { computeType: "CPU", workersMin: 1, workersMax: 1, flashboot: true };
  const endpoint = await makeEndpoint(server, makeHandler(ending, handler), settings);
  const job = await submit(server, endpoint, { a: 1 });
  await reach(server, endpoint, job, "COMPLETED");
  return { endpoint, job, worker: (await liveWorkers(server, endpoint))[0] as string };
}

async function liveWorkers(server: TestServer, endpoint: string): Promise<string[]> {
  const { body } = await call(server, "GET", `/v1/endpoints/${endpoint}/workers`);
  const lives = ({ state }: { state: string }) => ["starting", "idle", "running", "paused"].includes(state);
  return body.filter(lives).map(({ id }: { id: string }) => id);
}

/**
 * A public template, an endpoint and a volume that no worker uses; a worker that could not be started, and an earlier version.
 */
async function makeResources(server: TestServer) {
  const live = await makeLive(server);
  const made = async (path: string, body: unknown) => (await call(server, "POST", `/v1/${path}`, body)).body.id;
  const template = await made("templates", { name: "t", imageName: "registry.example/image", isPublic: true });
  const endpoint = await made("endpoints", { name: "e", templateId: template });
  const told = await submit(server, endpoint, { a: 1 });
  await call(server, "POST", `/v2/${endpoint}/cancel/${told}`);
  const volume = await made("networkvolumes", { name: "v", size: 1, dataCenterId: "EU-RO-1" });
  await call(server, "PATCH", `/v1/endpoints/${endpoint}`, { env: { A: "1" }, workersMin: 1 });
  const worker = await until(async () => {
    const { body } = await call(server, "GET", `/v1/endpoints/${endpoint}/workers?ended=true`);
    return body.find(({ state }: { state: string }) => state === "ended")?.id as string | undefined;
  });
  await call(server, "PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0 });
  const several = (make: (n: number) => Promise<string>) => Promise.all(Array.from({ length: 6 }, (_, n) => make(n)));
  const [pod = "", ...sparePods] = await several((n) =>
    made("pods", { name: `p${n}`, imageName: "registry.example/image" }),
  );
  const spares = await several((n) => made("endpoints", { name: `spare${n}`, templateId: template, workersMax: 0 }));
  const auth = await made("containerregistryauth", { name: "a", username: "u", password: "p" });
  // on an endpoint that the run does not know, and so does not delete
  const unseen = await made("templates", { name: "unseen", imageName: "registry.example/image" });
  const queue = await made("endpoints", { name: "unseen", templateId: unseen, workersMax: 0 });
  const job = await submit(server, queue, {}, { webhook });
  await call(server, "POST", `/v2/${queue}/cancel/${job}`);
  const delivery = await until(async () => {
    const { body } = await call(server, "GET", `/v1/webhooks/deliveries?jobId=${job}`);
    return body[0]?.state === "delivered" && (body[0].id as string);
  });
  const receiver = await until(async () => (await call(server, "GET", "/v1/webhooks/receivers")).body[0]?.id as string);
  const known = {
    "path.jobId": [told, live.job],
    "path.deliveryId": [delivery],
    "path.receiverId": [receiver],
    "path.workerId": [live.worker, worker],
    "path.podId": [pod],
    "path.version": ["1"],
    "path.containerRegistryAuthId": [auth],
    "path.endpointId": [endpoint, live.endpoint],
    "path.templateId": [template],
    "path.networkVolumeId": [volume],
    "body.templateId": [template],
  };
  // A call that follows a log does not end.
  const kept = { [endpoint]: spares, [pod]: sparePods };
  const ofEndpoint = { endpointId: endpoint };
  const pairs = {
    [told]: ofEndpoint,
    [worker]: ofEndpoint,
    "1": ofEndpoint,
    [live.job]: { endpointId: live.endpoint },
  };
  return {
    known,
    kept,
    pairs,
    ended: worker,
    live: { ...live, instead: endpoint },
    fixed: { "query.follow": "false" },
  };
}

/** Fuzzes, and expects every check to pass; resolves with the counts of answers. */
async function expectClean(server: TestServer, asked: Omit<Fuzzing, "seed" | "webhook">): Promise<Verdict["tally"]> {
  console.log(`fuzzing ${asked.document} with seed ${seed}`);
  const { code, output, tally } = await fuzz(server, { ...asked, seed, webhook });
  const lines = Object.entries(tally).map(([name, counts]) => `${name} ${JSON.stringify(counts)}`);
  console.log(lines.join("\n"));
  expect(code, output).toBe(0);
  return tally;
}

/** A run that met only refusals would prove nothing. */
function expectEachToWork(tally: Verdict["tally"]) {
  const works = (counts: Readonly<Record<string, number>> = {}) =>
    ["200", "201", "204"].some((status) => status in counts);
  expect(Object.keys(tally).filter((name) => !works(tally[name]))).toEqual([]);
}

/** The paths of REST v2's management, which stand beside the queue's in one document. */
const managed = "^/v2/(serverless|pods|billing|templates|network-volumes|registries|catalog)(/|$)";
/** Left out: streams that stay open, of a pod as long as it lives, and of changes. */
const without = { v1: "^/v1/events$", v2: "^/v2/pods/[^/]+/logs$" };

it("the queue API conforms to its OpenAPI document", { timeout }, async () => {
  const server = await start({ MILLRACE_RATE_LIMITS: "off" });
  const document = "/v2/openapi.json";
  expectEachToWork(await expectClean(server, { document, without: managed, examples, ...(await makeJobs(server)) }));
});

it("the management API of REST v2 conforms to its OpenAPI document", { timeout }, async () => {
  const server = await start({ MILLRACE_CONTAINERS: "off" });
  const { known, fixed: _, ended, ...made } = await makeResources(server);
  const catalog = {
    "path.gpuTypeId": ["NVIDIA L4"],
    "path.cpuFlavorId": ["cpu3c"],
    "path.dataCenterId": ["EU-RO-1"],
  };
  expectEachToWork(
    await expectClean(server, {
      document: "/v2/openapi.json",
      only: managed,
      without: without.v2,
      examples,
      ...made,
      // its log is followed, and that of a live worker does not end
      known: { ...known, ...catalog, "path.workerId": [ended] },
    }),
  );
  expect(await liveWorkers(server, made.live.endpoint)).not.toEqual([]);
});

it("the queue API conforms to its OpenAPI document beyond its rate limits", { timeout }, async () => {
  const server = await start({ MILLRACE_REQUESTS_PER_WORKER: "0" });
  const tally = await expectClean(server, {
    document: "/v2/openapi.json",
    without: managed,
    examples: 5,
    ...(await makeJobs(server)),
  });
  expect(tally["GET /v2/{endpointId}/requests"]).toHaveProperty("429");
});

it("the management API conforms to its OpenAPI document", { timeout }, async () => {
  const server = await start({ MILLRACE_CONTAINERS: "off" });
  const made = await makeResources(server);
  expectEachToWork(await expectClean(server, { document: "/v1/openapi.json", without: without.v1, examples, ...made }));
  expect(await liveWorkers(server, made.live.endpoint)).not.toEqual([]);
});
