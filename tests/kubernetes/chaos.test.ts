import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { TestCluster } from "../../scripts/kubernetes/cluster.mjs";
import { startPostgres, type TestPostgres } from "../../scripts/postgres.mjs";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { clusterSettings, clusterStartMs, namespace, podsIn, pythonCluster } from "./scene.js";

const image = "millrace.test/python:1";
/** Reports each job that it begins. */
const handler = `
import asyncio
import os
import urllib.request
import runpod

async def handler(job):
    line = f'{job["input"]["n"]} {os.environ["RUNPOD_POD_ID"]}'
    urllib.request.urlopen(os.environ["REPORTS"], line.encode()).read()
    await asyncio.sleep(job["input"]["seconds"])
    return job["input"]["n"]

runpod.serverless.start({"handler": handler})
`;

let cluster: TestCluster;
let postgres: TestPostgres;
let servers: TestServer[] = [];
let reports: Server;
/** The workers that have begun each job, in order. */
const begun = new Map<number, string[]>();
beforeAll(async () => {
  // a node that does not answer is lost sooner than by default
  const controllers = ["--node-monitor-grace-period=20s"];
  [cluster, postgres] = await Promise.all([pythonCluster(image, handler, { controllers }), startPostgres()]);
  reports = createServer((request, reply) => {
    let line = "";
    request.on("data", (part) => (line += part));
    request.on("end", () => {
      const [n, workerId = ""] = line.split(" ");
      begun.set(Number(n), [...(begun.get(Number(n)) ?? []), workerId]);
      reply.end();
    });
  });
  await new Promise<void>((done) => reports.listen(0, cluster.gateway, done));
  const shared = {
    MILLRACE_DATABASE_URL: postgres.url("postgres"),
    MILLRACE_SEAL_KEY: "5e".repeat(32),
    MILLRACE_RATE_LIMITS: "off",
  };
  const settings: Record<string, string> = { ...(await clusterSettings(cluster)), ...shared };
  // workers talk to the second server; the first one began to tend the cluster
  const { MILLRACE_PORT: _port, ...ofFirst } = settings;
  servers = [await startServer(ofFirst), await startServer(settings)];
}, clusterStartMs);
afterAll(async () => {
  for (const server of servers) await server.end();
  reports?.close();
  await postgres?.end();
  await cluster?.end();
});

const workersMax = 3;
const jobsEach = 12;
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

it("loses no job, runs none twice and leaves no pod, whatever goes away meanwhile", { timeout: 600_000 }, async () => {
  const [first, second] = servers as [TestServer, TestServer];
  const settings = { computeType: "CPU", workersMax, idleTimeout: 30, scalerType: "REQUEST_COUNT", scalerValue: 1 };
  const REPORTS = `http://${cluster.gateway}:${(reports.address() as AddressInfo).port}`;
  const endpoint = await makeEndpoint(second, image, settings, { env: { REPORTS } });
  const running = () =>
    podsIn(cluster).flatMap((line) => (line.endsWith(" Running") ? [line.split(" ")[0] as string] : []));
  const ids: string[] = [];
  const submitSome = async () => {
    for (let left = jobsEach; left > 0; left--) ids.push(await submit(second, endpoint, { n: ids.length, seconds: 1 }));
  };
  await submitSome();
  await until(() => running().length === workersMax, 60_000);

  /** Workers whose pods were taken away. */
  const casualties = new Set<string>();
  const struck = (pod: string) => {
    casualties.add(pod.replace("millrace-", ""));
    return pod;
  };
  const victim = () => until(() => running()[0], 60_000).then(struck);
  const remove = (pod: string) =>
    cluster.kubectl("delete", "pod", pod, `--namespace=${namespace}`, "--grace-period=0", "--force");
  const trouble: Record<string, () => Promise<unknown> | unknown> = {
    "a pod is deleted at once": async () => remove(await victim()),
    "a pod is evicted": async () => {
      const pod = await victim();
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod, namespace } };
      return cluster.create(`/api/v1/namespaces/${namespace}/pods/${pod}/eviction`, eviction);
    },
    "the API server is away for a while": async () => {
      await cluster.stop("api");
      await pause(4_000);
      cluster.start("api");
      await cluster.untilApiAnswers();
    },
    "the kubelet starts again": async () => {
      await cluster.node.stopKubelet();
      await pause(1_000);
      cluster.node.startKubelet();
    },
    "the server that tends the cluster hangs, and comes back when another one has taken over": async () => {
      process.kill(first.pid, "SIGSTOP");
      try {
        remove(await victim());
        await pause(10_000);
        remove(await victim());
      } finally {
        process.kill(first.pid, "SIGCONT");
      }
      await pause(3_000);
    },
    "a server is killed": async () => {
      await first.kill();
      await pause(8_000);
      await first.restart();
    },
    "the API server hangs": async () => {
      cluster.signal("api", "SIGSTOP");
      await pause(4_000);
      cluster.signal("api", "SIGCONT");
    },
    "the node stops answering until its pods are given up, and comes back": async () => {
      await victim();
      const before = running().map(struck);
      await cluster.node.stopKubelet();
      await until(() => before.every((pod) => isGivenUp(pod)), 120_000);
      await submitSome();
      cluster.node.startKubelet();
      await until(() => running().some((pod) => !before.includes(pod)), 120_000);
    },
  };
  const isGivenUp = (pod: string) => {
    const leaving = ["--ignore-not-found", "--output=jsonpath={.metadata.deletionTimestamp}{.metadata.name}"];
    const seen = cluster.kubectl("get", "pod", pod, `--namespace=${namespace}`, ...leaving).trim();
    return seen !== pod; // it has gone, or is to go
  };
  for (const act of Object.values(trouble)) {
    await act();
    await submitSome();
    await pause(2_000);
    expect(running().length).toBeLessThanOrEqual(workersMax);
  }

  for (const [n, id] of ids.entries()) {
    const job = await until(async () => {
      const now = await statusOf(second, endpoint, id);
      if (now.status === "FAILED") throw new Error(JSON.stringify(now));
      return now.status === "COMPLETED" && now;
    }, 200_000);
    expect(job.output).toBe(n);
    // who began it and did not complete it was a casualty
    const runs = begun.get(n) ?? [];
    expect(runs.at(-1)).toBe(job.workerId);
    expect(runs.slice(0, -1).filter((workerId) => !casualties.has(workerId))).toEqual([]);
    expect(runs.length).toBeLessThanOrEqual((job.retries ?? 0) + 1);
  }

  const read = async ({ url, key }: TestServer) => {
    const reply = await fetch(`${url}/v1/endpoints/${endpoint}/logs?tail=1000`, {
      headers: { authorization: `Bearer ${key}` },
    });
    return (await reply.text()).split("\n");
  };
  const shown = await Promise.all(servers.map(read));
  // a pod that still runs is read by every server, whoever tends it
  const alive = running().map((name) => name.replace("millrace-", ""));
  for (const id of alive) for (const lines of shown) expect(lines.some((line) => line.includes(` ${id} `))).toBe(true);

  await call(second, "DELETE", `/sdk/v1/endpoints/${endpoint}`);
  await expect.poll(() => podsIn(cluster), { timeout: 60_000 }).toEqual([]);
  const secrets = () => cluster.kubectl("get", "secrets", `--namespace=${namespace}`, "--output=name");
  await expect.poll(secrets, { timeout: 60_000 }).toBe("");
});
