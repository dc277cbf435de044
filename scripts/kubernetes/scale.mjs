// What thousands of workers in a cluster cost: `node scripts/kubernetes/scale.mjs [ENDPOINTS [WORKERS-OF-EACH]]`, by default
// 300 and 7. The control plane and its scheduler are real, the nodes are not. Needs root; `npm test` must have run once.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../clone.mjs";
import { startCluster } from "./cluster.mjs";
import { fakeNodes } from "./fake-nodes.mjs";

const endpoints = Number(process.argv[2] ?? 300);
const workersOfEach = Number(process.argv[3] ?? 7);
const workers = endpoints * workersOfEach;
const patienceMs = 600_000;
const port = 28_123;
const key = "mr_scale_0123456789abcdef0123456789abcdef";

const cluster = await startCluster({ hasNode: false, settings: { controllers: ["--node-monitor-grace-period=3h"] } });
const nodes = await fakeNodes(cluster, Math.ceil(workers / 200) + 1);
const dataDir = mkdtempSync(join(tmpdir(), "millrace-scale-"));
const settings = {
  MILLRACE_DATA_DIR: dataDir,
  MILLRACE_PORT: String(port),
  MILLRACE_API_KEY: key,
  MILLRACE_DEMO: "off",
  MILLRACE_BANNER: "off",
  MILLRACE_CONTAINERS: "off",
  MILLRACE_KUBERNETES: "on",
  MILLRACE_WORKER_URL: "http://192.0.2.1:8000",
  KUBECONFIG: cluster.kubeconfig,
};
const server = spawn(process.execPath, [join(root, "packages/server/dist/main.js")], {
  env: { ...process.env, ...settings },
  stdio: ["ignore", "pipe", "inherit"],
});
let log = "";
server.stdout.on("data", (text) => (log += text));
const count = (event) => log.split(`"event":"${event}"`).length - 1;

try {
  await until(() => fetch(`http://127.0.0.1:${port}/readyz`).then((reply) => reply.ok));
  const memoryBefore = memoryMib();
  const template = await call("POST", "/v1/templates", { name: "scale", imageName: "me/worker:1", isServerless: true });
  const [began, cpuBefore, callsBefore] = [Date.now(), cpuSeconds(), calls()];
  const ids = [];
  const size = { computeType: "CPU", workersMin: workersOfEach, workersMax: workersOfEach };
  for (let n = 0; n < endpoints; n++)
    ids.push((await call("POST", "/v1/endpoints", { name: `scale-${n}`, templateId: template.id, ...size })).id);
  await until(() => count("worker.started") >= workers);
  report("started", began, cpuBefore, callsBefore);
  console.log(`memory of the server: ${memoryBefore} MiB before, ${memoryMib()} MiB with ${workers} workers`);
  const idleBefore = cpuSeconds();
  await sleep(10_000);
  console.log(`processor time with all of them there: ${((cpuSeconds() - idleBefore) * 100).toFixed(0)} ms a second`);
  const [downAt, cpuAtDown, callsAtDown] = [Date.now(), cpuSeconds(), calls()];
  for (const id of ids) await call("DELETE", `/sdk/v1/endpoints/${id}`);
  await until(() => pods() === 0);
  report("ended", downAt, cpuAtDown, callsAtDown);
} finally {
  server.kill("SIGKILL");
  await nodes.end();
  await cluster.end();
  rmSync(dataDir, { recursive: true, force: true });
}
process.exit(0);

function report(what, began, cpuBefore, callsBefore) {
  const seconds = (Date.now() - began) / 1_000;
  const now = calls();
  const perWorker = (n) => (n / workers).toFixed(1);
  const kinds = [...now]
    .map(([kind, n]) => [kind, n - (callsBefore.get(kind) ?? 0)])
    .filter(([, n]) => n >= workers / 10);
  const shown = kinds.map(([kind, n]) => `${perWorker(n)} × ${kind}`).join(", ");
  console.log(`${workers} workers ${what} in ${seconds.toFixed(0)} s: ${(workers / seconds).toFixed(0)} a second`);
  const cpuMs = ((cpuSeconds() - cpuBefore) * 1_000) / workers;
  console.log(`  ${cpuMs.toFixed(1)} ms of the server's processor time each; calls, all clients together: ${shown}`);
}

async function call(method, path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body && JSON.stringify(body) });
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
    await sleep(500);
  }
}

function pods() {
  return cluster.kubectl("get", "pods", "--output=name").split("\n").filter(Boolean).length;
}

/** Calls about pods and secrets that the API server has answered so far. */
function calls() {
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

function cpuSeconds() {
  const stat = readFileSync(`/proc/${server.pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function memoryMib() {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))[1]) / 1_024);
}
