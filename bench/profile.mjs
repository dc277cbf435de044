// Where the server's time goes under a row's load: `npm run bench -- --profile run|whole|balanced|large`.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../scripts/set-up.mjs";
import { interruptible } from "./interruption.mjs";
import { Refused, startMillrace } from "./millrace.mjs";
import { makeFolder, startAgent } from "./processes.mjs";
import { balancedRequests } from "./rows/balanced.mjs";
import { largeJobs, startClient } from "./rows/large.mjs";
import { submissions } from "./rows/run.mjs";
import { wholeJobs } from "./rows/whole.mjs";
import { within } from "./scope.mjs";
import { Services } from "./services.mjs";

const out = join(import.meta.dirname, "out");
const shownMax = 30;

const loads = {
  async run(services, server, scope) {
    const plan = await submissions(server, makeFolder(scope));
    return async () => (await services.load({ ...plan, seconds: 3 })).perSecond;
  },
  async balanced(services, server) {
    const plan = await balancedRequests(server);
    return async () => (await services.load({ ...plan, seconds: 3 })).perSecond;
  },
  async large(_services, server, scope) {
    const [client, taker] = [await startClient(scope), await startAgent(scope, "agents/taker.mjs")];
    const round = await largeJobs({ server, client, taker }, scope);
    return async () => (await round()).rate;
  },
  whole: (services, server) => wholeJobs(services, [server], 5_000),
};

/** Profiles the main thread of a server on each database. Resolves with the exit code. */
export async function profile({ profile: name, databases, rounds = 3 }) {
  try {
    await interruptible(async () => {
      for (const database of databases) await within((scope) => profileOn(name, database, rounds, scope));
    });
    return 0;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(error.message);
    return 1;
  }
}

async function profileOn(name, database, rounds, scope) {
  const services = new Services(scope);
  const dir = join(out, `${name}-${database}-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`);
  mkdirSync(dir, { recursive: true });
  const nodeArgs = ["--cpu-prof", `--cpu-prof-dir=${dir}`, "--cpu-prof-interval=500"];
  const server = await startMillrace(scope, { ...(await services.storage(database)), nodeArgs });
  const load = await loads[name](services, server, scope);
  await load();
  const from = microsecondsNow();
  const rates = [];
  for (let round = 0; round < rounds; round++) rates.push(Math.round(await load()));
  const until = microsecondsNow();
  const { pid } = server;
  await server.stop();
  const file = readdirSync(dir).find((each) => each.includes(`.${pid}.0.`));
  if (file === undefined) throw new Error(`The server left no profile in ${dir}.`);
  console.log(`\n${name} on ${database}, profiled: ${rates.join(", ")} a second`);
  console.log(`The profile, for a browser's developer tools: ${relative(process.cwd(), join(dir, file))}\n`);
  console.log(report(JSON.parse(readFileSync(join(dir, file), "utf8")), from, until));
}

/** The clock of the profiles' timestamps. */
const microsecondsNow = () => Number(process.hrtime.bigint() / 1_000n);

/**
 * The functions that took most time between two moments, alone and with everything they called, as shares of the busy
 * time.
 */
function report({ nodes, samples, timeDeltas, startTime }, from, until) {
  const selfByNode = new Map();
  let now = startTime;
  for (const [at, id] of samples.entries()) {
    now += timeDeltas[at];
    if (now >= from && now <= until) add(selfByNode, id, timeDeltas[at]);
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const own = new Map();
  const inclusive = new Map();
  let busy = 0;
  /** A function that is on the stack twice counts once. */
  const visit = (id, above) => {
    const node = byId.get(id);
    const name = nameOf(node.callFrame);
    const self = selfByNode.get(id) ?? 0;
    const isNew = !above.has(name);
    if (isNew) above.add(name);
    let total = self;
    for (const child of node.children ?? []) total += visit(child, above);
    if (isNew) above.delete(name);
    add(own, name, self);
    if (isNew) add(inclusive, name, total);
    if (!/^\((idle|root)\)/.test(name)) busy += self;
    return total;
  };
  visit(nodes[0].id, new Set());
  for (const times of [own, inclusive]) for (const name of ["(idle)", "(root)"]) times.delete(name);
  return `${list("by themselves", own, busy)}\n\n${list("with all they called", inclusive, busy)}`;
}

const add = (times, name, by) => times.set(name, (times.get(name) ?? 0) + by);

function list(title, times, busy) {
  const top = [...times].sort((a, b) => b[1] - a[1]).slice(0, shownMax);
  const lines = top.map(
    ([name, time]) =>
      `${((time / busy) * 100).toFixed(1).padStart(6)} % ${(time / 1_000).toFixed(0).padStart(7)} ms  ${name}`,
  );
  return `Functions ${title} (of ${(busy / 1e6).toFixed(1)} s that were not idle)\n${lines.join("\n")}`;
}

function nameOf({ functionName, url, lineNumber }) {
  if (url === "") return functionName || "(anonymous)";
  const path = url.startsWith("file:") ? relative(root, fileURLToPath(url)) : url;
  return `${functionName || "(anonymous)"}  ${path.replace("node_modules/", "")}:${lineNumber + 1}`;
}
