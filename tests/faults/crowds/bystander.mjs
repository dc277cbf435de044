// A well-behaved client in its own process, so that the test's own work for hostile clients does not slow it. It
// submits and reads jobs at a steady pace and reports how long each answer took. Between these requests it calls a bare
// server that has nothing else to do, and a thread that computes briefly measures how long it waits for a core: both
// show the machine's share of any delay.
import { Agent, createServer, request } from "node:http";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const burstUs = 10_000;

/** Runs a computation of 10 ms, and returns how many times longer it took: 1 if a core was free for it. */
function stretchOfABurst() {
  const startedAt = performance.now();
  const before = process.threadCpuUsage();
  let used = 0;
  while (used < burstUs) {
    const { user, system } = process.threadCpuUsage(before);
    used = user + system;
  }
  return ((performance.now() - startedAt) * 1_000) / used;
}

if (workerData === "stretch")
  for (;;) {
    parentPort.postMessage(stretchOfABurst());
    await new Promise((done) => setTimeout(done, 100));
  }

if (!isMainThread) {
  const bare = createServer((_request, reply) => reply.end("{}"));
  await new Promise((done) => bare.listen(0, "127.0.0.1", done));
  parentPort.postMessage(bare.address().port);
  await new Promise(() => {});
}

const { url, key, endpoint } = JSON.parse(process.argv[2]);
const bare = new Worker(new URL(import.meta.url));
let times;
let bareTimes;
let stretches;
let failures;
new Worker(new URL(import.meta.url), { workerData: "stretch" }).on("message", (stretch) => stretches?.push(stretch));
const bareUrl = `http://127.0.0.1:${await new Promise((done) => bare.once("message", done))}`;
const agent = new Agent({ keepAlive: true, maxSockets: 1 }); // one connection to each server
const auditors = 8;
const auditAgent = new Agent({ keepAlive: true, maxSockets: auditors });
const paceMs = 5;
const jobs = [];
/** How many of the jobs the audits have covered so far. */
let audited = 0;

function call(method, path, body, { to = url, through = agent } = {}) {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, ...(body ? { "content-length": Buffer.byteLength(body) } : {}) };
    const sent = request(to + path, { method, agent: through, headers }, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part) => (text += part));
      reply.on("end", () => resolve({ status: reply.statusCode, text }));
    });
    sent.on("error", (error) => resolve({ status: 0, text: String(error) }));
    sent.end(body);
  });
}

async function timed(method, path, body) {
  const askedAt = performance.now();
  const { status, text } = await call(method, path, body);
  times?.push(performance.now() - askedAt);
  if (status === 200) return JSON.parse(text);
  failures?.push(`${method} ${path}: ${status} ${text.slice(0, 200)}`);
  return undefined;
}

function spread(numbers) {
  const sorted = numbers.sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** The jobs that are gone, or that differ from what was submitted. */
async function lostOf(submitted) {
  const lost = [];
  const left = submitted.values();
  const audit = async () => {
    for (const { id, n } of left) {
      const { status, text } = await call("GET", `/v2/${endpoint}/status/${id}`, undefined, { through: auditAgent });
      if (status !== 200 || JSON.parse(text).status !== "IN_QUEUE") lost.push(`${n} ${id}: ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: auditors }, audit));
  return lost;
}

const answers = {
  begin() {
    times = [];
    bareTimes = [];
    stretches = [];
    failures = [];
  },
  end() {
    return { ...spread(times), bareP99: spread(bareTimes).p99, stretch: spread(stretches).p50, failures };
  },
  // Checking every job after each of many attacks would take minutes.
  lost() {
    const from = audited;
    audited = jobs.length;
    return lostOf(jobs.slice(from));
  },
  lostEver: () => lostOf(jobs.slice()),
};

process.on("message", async (word) => process.send({ word, answer: await answers[word]() }));
process.on("disconnect", () => process.exit(0));

for (let n = 0; ; n++) {
  const submitted = await timed("POST", `/v2/${endpoint}/run`, JSON.stringify({ input: { n } }));
  if (submitted) {
    jobs.push({ id: submitted.id, n });
    await timed("GET", `/v2/${endpoint}/status/${submitted.id}`);
  }
  await timed("GET", "/healthz");
  const askedAt = performance.now();
  await call("GET", "/", undefined, { to: bareUrl });
  bareTimes?.push(performance.now() - askedAt);
  await new Promise((done) => setTimeout(done, paceMs));
}
