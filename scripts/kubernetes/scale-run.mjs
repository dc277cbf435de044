// One run with thousands of workers in a cluster whose control plane and scheduler are real, and whose nodes are not.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../clone.mjs";
import { startCluster } from "./cluster.mjs";
import { fakeNodes } from "./fake-nodes.mjs";
import { fakeWorkers } from "./fake-workers.mjs";

const patienceMs = 600_000;
const awayMs = 5_000;
const jobGapMs = 20;
const port = 28_123;
const key = "mr_scale_0123456789abcdef0123456789abcdef";

/**
 * Starts `workersOfEach` workers of each of `endpoints` endpoints, looks at the idle server, and ends them. Needs root.
 * With `isTroubled`, jobs come all the while, the API server is killed for 5 s when half of the workers have started,
 * and hangs for 5 s at three quarters; then it is killed once more to see how long a lost watch takes. Throws if a job
 * is lost, or a worker has two pods. `say` is told what is going on.
 */
export async function runScale({ endpoints, workersOfEach, isTroubled = false, say = () => {} }) {
  const workers = endpoints * workersOfEach;
  const cluster = await startCluster({ hasNode: false, settings: { controllers: ["--node-monitor-grace-period=3h"] } });
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-scale-"));
  const played = isTroubled ? fakeWorkers() : undefined;
  let nodes;
  let server;
  try {
    nodes = await fakeNodes(cluster, Math.ceil(workers / 200) + 1, played);
    server = startServer(cluster, dataDir);
    const { call, count, until, figures } = server;
    await until(() => fetch(`http://127.0.0.1:${port}/readyz`).then((reply) => reply.ok));
    const memoryBefore = server.memoryMib();
    const template = await call("POST", "/v1/templates", {
      name: "scale",
      imageName: "me/worker:1",
      isServerless: true,
    });
    say(`starting ${workers} workers`);
    const starting = figures(cluster, workers);
    const ids = [];
    const size = { computeType: "CPU", workersMin: workersOfEach, workersMax: workersOfEach };
    for (let n = 0; n < endpoints; n++)
      ids.push((await call("POST", "/v1/endpoints", { name: `scale-${n}`, templateId: template.id, ...size })).id);
    const jobs = isTroubled ? streamOfJobs(server, ids) : undefined;
    const hasStarted = (share) => until(() => count("worker.started") >= workers * share);
    if (isTroubled) {
      await hasStarted(1 / 2);
      say("the API server is killed");
      await restart(cluster);
      await hasStarted(3 / 4);
      say("the API server hangs");
      cluster.signal("api", "SIGSTOP");
      await sleep(awayMs);
      cluster.signal("api", "SIGCONT");
    }
    await hasStarted(1);
    const started = starting();
    const memory = { before: memoryBefore, after: server.memoryMib() };
    const names = podsIn(cluster);
    if (new Set(names).size !== workers) throw new Error(`${workers} workers have ${names.length} pods`);
    const watchMs = isTroubled ? await lostWatch(cluster, server, names[0]) : undefined;
    const done = await jobs?.end(played.runs);
    const idleBefore = server.cpuSeconds();
    await sleep(10_000);
    const idle = (server.cpuSeconds() - idleBefore) * 100;
    say(`ending ${workers} workers`);
    const ending = figures(cluster, workers);
    for (const id of ids) await call("DELETE", `/sdk/v1/endpoints/${id}`);
    await until(() => podsIn(cluster).length === 0);
    return { workers, started, memory, watchMs, jobs: done, idle, ended: ending() };
  } finally {
    server?.process.kill("SIGKILL");
    await played?.end();
    await nodes?.end();
    await cluster.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Submits jobs to endpoints in turn until `end` is called, which waits for all of them. */
function streamOfJobs({ call, until }, endpoints) {
  const jobs = [];
  let isOver = false;
  const submit = async () => {
    while (!isOver) {
      const n = jobs.length;
      const job = { endpoint: endpoints[n % endpoints.length], n, id: undefined };
      jobs.push(job);
      job.id = (await call("POST", `/v2/${job.endpoint}/run`, { input: { n } })).id;
      await sleep(jobGapMs);
    }
  };
  const submitted = submit();
  return {
    /** Resolves with their number, and that of the jobs which were run more than once. */
    async end(runs) {
      isOver = true;
      await submitted;
      for (const { endpoint, n, id } of jobs) {
        let job;
        await until(async () => {
          job = await call("GET", `/v2/${endpoint}/status/${id}`);
          return job.status === "COMPLETED" || job.status === "FAILED";
        });
        if (job.output?.n !== n) throw new Error(`job ${n} was lost: ${JSON.stringify(job)}`);
      }
      return { all: jobs.length, again: [...runs.values()].filter((times) => times > 1).length };
    },
  };
}

async function restart(cluster) {
  await cluster.stop("api");
  await sleep(awayMs);
  cluster.start("api");
  await cluster.untilApiAnswers();
}

/** How long it takes, from when the API server answers again, until the server knows of a pod that is gone. */
async function lostWatch(cluster, { count, until }, pod) {
  const ended = count("worker.ended");
  await restart(cluster);
  const began = Date.now();
  cluster.kubectl("delete", pod, "--grace-period=0", "--force");
  await until(() => count("worker.ended") > ended);
  return Date.now() - began;
}

const podsIn = (cluster) => cluster.kubectl("get", "pods", "--output=name").split("\n").filter(Boolean);

function startServer(cluster, dataDir) {
  const settings = {
    MILLRACE_DATA_DIR: dataDir,
    MILLRACE_PORT: String(port),
    MILLRACE_API_KEY: key,
    MILLRACE_DEMO: "off",
    MILLRACE_BANNER: "off",
    MILLRACE_CONTAINERS: "off",
    MILLRACE_KUBERNETES: "on",
    MILLRACE_WORKER_URL: `http://127.0.0.1:${port}`,
    KUBECONFIG: cluster.kubeconfig,
  };
  const child = spawn(process.execPath, [join(root, "packages/server/dist/main.js")], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let log = "";
  child.stdout.on("data", (text) => (log += text));
  process.once("exit", () => child.kill("SIGKILL"));

  async function call(method, path, body) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers,
      body: body && JSON.stringify(body),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  async function until(isSo) {
    const deadline = Date.now() + patienceMs;
    while (
      !(await Promise.resolve()
        .then(isSo)
        .catch(() => false))
    ) {
      if (Date.now() > deadline) throw new Error(`not after ${patienceMs / 1_000} s:\n${log.slice(-3_000)}`);
      await sleep(200);
    }
  }

  function cpuSeconds() {
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / 100;
  }

  const memoryMib = () =>
    Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1_024);

  /** Begins to count; the result tells how it went so far, for each worker. */
  function figures(cluster, workers) {
    const [began, cpuBefore, callsBefore] = [Date.now(), cpuSeconds(), callsOf(cluster)];
    return () => {
      const calls = [...callsOf(cluster)]
        .map(([kind, n]) => [kind, (n - (callsBefore.get(kind) ?? 0)) / workers])
        .filter(([, n]) => n >= 0.1);
      const cpuMs = ((cpuSeconds() - cpuBefore) * 1_000) / workers;
      return { seconds: (Date.now() - began) / 1_000, cpuMs, calls };
    };
  }

  const count = (event) => log.split(`"event":"${event}"`).length - 1;
  return { process: child, call, until, count, cpuSeconds, memoryMib, figures };
}

/** Calls about pods and secrets that the API server has answered since it started, by kind. */
function callsOf(cluster) {
  const found = new Map();
  for (const line of cluster.kubectl("get", "--raw", "/metrics").split("\n")) {
    const labels = /^apiserver_request_total\{(.*)\} /.exec(line)?.[1];
    const label = (name) => new RegExp(`${name}="([^"]*)"`).exec(labels)?.[1] ?? "";
    if (labels === undefined || !/^(pods|secrets)$/.test(label("resource"))) continue;
    const kind = `${label("verb")} ${[label("resource"), label("subresource")].filter(Boolean).join("/")}`;
    found.set(kind, (found.get(kind) ?? 0) + Number(line.split(" ").at(-1)));
  }
  return found;
}
