import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeEndpoint, root } from "../harness.js";
import { type Run, RunJournal } from "./audit/run-journal.js";

/** The address to call, and the key to use. */
export interface Target {
  readonly url: string;
  readonly key: string;
}

/** What a job asks of its handler. `key` names the submission, so that a line of the journal can be traced to it. */
export interface Input extends Readonly<Record<string, unknown>> {
  readonly key: string;
  readonly ms: number;
  readonly fate: "return" | "raise";
  /** A file: the handler runs until it exists. Only handlers of our SDK support it. */
  readonly until?: string;
}

/** One endpoint and its kind of worker. */
export interface Stage {
  readonly endpoint: string;
  readonly kind: "own" | "stock";
}

const ownHandler = `
import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
export const options = { concurrency: Number(process.env.CONCURRENCY ?? 1) };
export default async ({ key, ms, fate, until }, job) => {
  const run = randomUUID();
  const about = { run, job: job.id, key, worker: process.env.RUNPOD_POD_ID, pid: process.pid };
  const line = (word) => JSON.stringify({ ...about, word, at: Date.now() });
  const note = (word) => appendFileSync(process.env.JOURNAL, line(word) + "\\n");
  note("start");
  await sleep(ms, undefined, { signal: job.signal });
  while (until && !existsSync(until)) await sleep(50, undefined, { signal: job.signal });
  note("end");
  if (fate === "raise") throw new Error("raised by " + run);
  return { key, run };
};
`;

const stockHandler = `
import json, os, time, uuid
import runpod

def note(line):
    file = os.open(os.environ["JOURNAL"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (json.dumps(line) + "\\n").encode())
    os.close(file)

def handler(job):
    asked = job["input"]
    run = str(uuid.uuid4())
    worker = {"worker": os.environ["RUNPOD_POD_ID"], "pid": os.getpid()}
    about = {"run": run, "job": job["id"], "key": asked["key"], **worker}
    note({**about, "word": "start", "at": int(time.time() * 1000)})
    time.sleep(asked["ms"] / 1000)
    note({**about, "word": "end", "at": int(time.time() * 1000)})
    if asked["fate"] == "raise":
        raise ValueError("raised by " + run)
    return {"key": asked["key"], "run": run}

runpod.serverless.start({"handler": handler})
`;

/** The interpreter of the Python environment with the stock worker; undefined if there is none. */
export function stockPython(): string | undefined {
  const python = join(process.env.MILLRACE_TEST_VENV ?? join(root, ".cache/venv"), "bin/python");
  return existsSync(python) ? python : undefined;
}

/** A folder with handlers that keep a journal of their real runs. */
export class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), "millrace-faults-"));
  readonly journal = new RunJournal(join(this.folder, "journal.jsonl"));

  constructor() {
    for (const [name, text] of [
      ["own/handler.mjs", ownHandler],
      ["stock/handler.py", stockHandler],
    ] as const) {
      mkdirSync(join(this.folder, name, ".."), { recursive: true });
      writeFileSync(join(this.folder, name), text);
    }
  }

  /** Makes an endpoint whose workers use our SDK. */
  async own(server: Target, settings: Record<string, unknown> = {}, concurrency = 1): Promise<Stage> {
    const env = { JOURNAL: this.journal.path, CONCURRENCY: String(concurrency) };
    const endpoint = await makeEndpoint(server, join(this.folder, "own"), { idleTimeout: 5, ...settings }, { env });
    return { endpoint, kind: "own" };
  }

  /** Makes an endpoint whose workers use the stock Python package. */
  async stock(server: Target, python: string, settings: Record<string, unknown> = {}): Promise<Stage> {
    const template = { dockerStartCmd: [python, "-u", "handler.py"], env: { JOURNAL: this.journal.path } };
    const endpoint = await makeEndpoint(server, join(this.folder, "stock"), { idleTimeout: 5, ...settings }, template);
    return { endpoint, kind: "stock" };
  }

  /** All runs so far, in the order of their starts. */
  runs(): Run[] {
    return this.journal.all();
  }

  end(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
