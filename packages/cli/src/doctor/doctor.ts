import { existsSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Calls, openCalls } from "../calls.js";
import type { Env } from "../contexts.js";
import { runProgram } from "../run-program.js";
import { findServer } from "../server.js";
import { containersAndGpus } from "./devices.js";
import type { Finding } from "./finding.js";

const oldestNode = 24;
const freeGbLeast = 5;
const timeoutMs = 15_000;
const clockSkewMsMost = 2_000;

/** Looks at what Millrace and its workers need on this machine. */
export async function examine(env: Env, folder: string, context?: string): Promise<Finding[]> {
  const server = await serverFindings(env, folder, context);
  const isServed = server.some(({ what, is }) => what === "server" && is === "fine");
  return [
    node(),
    await python(env, folder),
    ...(await containersAndGpus(env, folder)),
    disk(env, folder),
    ...(isServed ? [] : [await port(env)]),
    ...server,
  ];
}

function node(): Finding {
  const [major = 0] = process.versions.node.split(".").map(Number);
  const words = `Node.js ${process.versions.node}`;
  return major >= oldestNode
    ? { what: "runtime", is: "fine", words }
    : {
        what: "runtime",
        is: "missing",
        words: `${words}; the server runs on ${oldestNode}, which its first start brings`,
        mend: "npm start",
      };
}

async function python(env: Env, folder: string): Promise<Finding> {
  const { code, output } = await runProgram("python3", ["--version"], { env, cwd: folder, timeoutMs });
  if (code !== 0)
    return {
      what: "Python",
      is: "missing",
      words: "not installed: Python handlers need it",
      mend: "sudo apt install python3 python3-venv",
    };
  const venv = await runProgram("python3", ["-c", "import venv, ensurepip"], { env, cwd: folder, timeoutMs });
  return venv.code === 0
    ? { what: "Python", is: "fine", words: output }
    : { what: "Python", is: "missing", words: `${output}, but no venv`, mend: "sudo apt install python3-venv" };
}

function disk(env: Env, folder: string): Finding {
  const at = env.MILLRACE_DATA_DIR || join(folder, ".millrace");
  const { bavail, bsize } = statfsSync(existsSync(at) ? at : folder);
  const freeGb = (bavail * bsize) / 1e9;
  const words = `${freeGb.toFixed(0)} GB free`;
  return freeGb >= freeGbLeast
    ? { what: "disk", is: "fine", words }
    : { what: "disk", is: "wrong", words: `${words} in ${at}: less than ${freeGbLeast}`, mend: `du -sh ${at}/*` };
}

async function port(env: Env): Promise<Finding> {
  const asked = Number(env.MILLRACE_PORT || 8_000);
  const probe = createServer();
  const isFree = await new Promise<boolean>((done) => {
    probe.once("error", () => done(false));
    probe.listen(asked, "127.0.0.1", () => probe.close(() => done(true)));
  });
  return isFree
    ? { what: "port", is: "fine", words: `${asked} is free` }
    : {
        what: "port",
        is: "wrong",
        words: `${asked} is used by another program`,
        mend: `ss -ltnp sport = :${asked}, or MILLRACE_PORT=${asked + 1} npm start`,
      };
}

/** The server that commands speak to, with its database, the key, and its clock. */
async function serverFindings(env: Env, folder: string, context: string | undefined): Promise<Finding[]> {
  let calls: Calls;
  try {
    calls = openCalls(findServer(env, folder, context));
  } catch (error) {
    return [{ what: "server", is: "missing", words: (error as Error).message, mend: "npm start" }];
  }
  const { url } = calls;
  const beforeAt = Date.now();
  const ready = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(timeoutMs) }).catch(() => undefined);
  if (!ready) return [{ what: "server", is: "missing", words: `none answers at ${url}`, mend: "npm start" }];
  const { version } = (await fetch(`${url}/healthz`).then((reply) => reply.json())) as { version?: string };
  const skewMs = Math.abs(Date.parse(ready.headers.get("date") ?? "") - (beforeAt + Date.now()) / 2);
  const isAccepted = await calls.call("GET", "/v1/endpoints").then(
    () => true,
    () => false,
  );
  return [
    { what: "server", is: "fine", words: `Millrace ${version ?? ""} at ${url}` },
    ready.ok
      ? { what: "database", is: "fine", words: "answers" }
      : { what: "database", is: "wrong", words: await whyNotReady(ready), mend: `curl -i ${url}/readyz` },
    isAccepted
      ? { what: "key", is: "fine", words: "accepted" }
      : { what: "key", is: "wrong", words: "refused", mend: `millrace context add NAME --url ${url}` },
    // the header has whole seconds
    skewMs <= clockSkewMsMost || Number.isNaN(skewMs)
      ? { what: "clock", is: "fine", words: "as the server's" }
      : {
          what: "clock",
          is: "wrong",
          words: `${Math.round(skewMs / 1_000)} s from the server's`,
          mend: "sudo timedatectl set-ntp true",
        },
  ];
}

/** What a server says that is not ready. */
async function whyNotReady(reply: Response): Promise<string> {
  const { error } = (await reply.json().catch(() => ({}))) as { error?: unknown };
  return typeof error === "string" ? error : "does not answer";
}
