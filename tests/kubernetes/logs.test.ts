import { writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startCluster, type TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { workersOf } from "../e2e/life.js";
import { statusOf, submit } from "../e2e/wire.js";
import { makeEndpoint, type TestServer, until } from "../harness.js";
import { clusterStartMs, namespace, startClusterServer } from "./scene.js";

const image = "millrace.test/talker:1";
/** Says numbered lines on both pipes, alone and some at once, and reports their number, until the answer is to end. */
const handler = `
let n = 0;
const lines = (pipe, count) => Array.from({ length: count }, () => pipe + " " + n++ + " " + "x".repeat(n % 300) + "\\n");
export default async () => {
  for (;;) {
    process.stdout.write(lines("out", 1)[0]);
    process.stderr.write(lines("err", 1)[0]);
    process.stdout.write(lines("out", 2).join(""));
    await new Promise((done) => setTimeout(done, 60)); // all its lines are read at once below
    const reply = await fetch(process.env.LISTENER, { method: "POST", body: String(n) });
    if ((await reply.text()) === "end") return n;
  }
};
`;

let cluster: TestCluster;
let server: TestServer;
let listener: Server;
let said = 0;
let answer = "go on";
beforeAll(async () => {
  cluster = await startCluster();
  const file = join(cluster.home, "handler.mjs");
  writeFileSync(file, handler);
  makeNodeImage(cluster, image, { handler: file });
  cluster.kubectl("create", "namespace", namespace);
  listener = createServer((request, reply) => {
    request.on("data", (count) => (said = Number(count)));
    request.on("end", () => reply.end(answer));
  });
  await new Promise<void>((done) => listener.listen(0, cluster.gateway, done));
  server = await startClusterServer(cluster);
}, clusterStartMs);
afterAll(async () => {
  await server?.end();
  listener?.closeAllConnections();
  listener?.close();
  await cluster?.end();
});

it("A worker's log has each of its lines once, whatever starts again meanwhile", { timeout: 300_000 }, async () => {
  const LISTENER = `http://${cluster.gateway}:${(listener.address() as AddressInfo).port}`;
  const settings = { computeType: "CPU", workersMax: 1, idleTimeout: 600 };
  const endpoint = await makeEndpoint(server, image, settings, { env: { LISTENER } });
  const id = await submit(server, endpoint, {});
  const [{ id: workerId }] = await until(async () => said > 0 && (await workersOf(server, endpoint)), 60_000);
  /** The numbers of the lines that are kept as they were written. */
  const kept = async (): Promise<number[]> => {
    const headers = { authorization: `Bearer ${server.key}` };
    const reply = await fetch(`${server.url}/v1/workers/${workerId}/logs?tail=10000`, { headers });
    const lines = [...(await reply.text()).matchAll(/\b(?:out|err) (\d+) (x*)/g)];
    return lines.filter(([, n, rest]) => rest?.length === (Number(n) + 1) % 300).map(([, n]) => Number(n));
  };
  const speaks = async (lines = 100) => {
    const before = said;
    await until(() => said > before + lines, 60_000);
  };
  const isHeard = async () => {
    const now = said;
    await until(async () => ((await kept()).at(-1) ?? 0) > now, 60_000);
  };

  const restarts: (() => Promise<void>)[] = [
    ...(["SIGKILL", "SIGTERM", "SIGKILL"] as const).map((signal) => async () => {
      await cluster.node.stopKubelet(signal);
      await speaks();
      cluster.node.startKubelet();
    }),
    async () => {
      await cluster.stop("api");
      await speaks();
      cluster.start("api");
      await cluster.untilApiAnswers();
    },
    async () => {
      await server.kill();
      await speaks();
      await server.restart();
    },
  ];
  for (const restart of restarts) {
    await isHeard();
    await restart();
  }
  await isHeard();
  answer = "end";
  const { output } = await until(async () => {
    const job = await statusOf(server, endpoint, id);
    return job.status === "COMPLETED" && job;
  }, 60_000);
  expect(output).toBe(said);
  await expect
    .poll(async () => (await kept()).sort((a, b) => a - b))
    .toEqual(Array.from({ length: said }, (_, n) => n));
});
