import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { journal, makeEndpoint, until } from "../harness.js";
import { type Ending, endWith, makeFolder } from "./handlers.js";
import { type Body, statusOf, submit, type Target } from "./wire.js";

/** The reply to a worker call; `job` is the parsed body of a take. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly body: Body;
}

/** A live worker process that does nothing: the test makes its calls, with its secret, over real HTTP. */
export interface Puppet {
  readonly id: string;
  readonly pid: number;
  readonly env: Readonly<Record<string, string>>;
  /** Any worker call: `url` as in the worker's environment, with its placeholders filled in. */
  call(method: string, url: string, body?: string | Uint8Array<ArrayBuffer>, options?: CallOptions): Promise<Answer>;
  takeUrl(inProgress: boolean): string;
  doneUrl(job: string, isStream?: boolean): string;
  chunkUrl(job: string): string;
  pingUrl(jobs?: readonly string[], more?: string): string;
  stopUrl(): string;
  /** One poll for a job. */
  take(options?: { inProgress?: boolean; signal?: AbortSignal }): Promise<Answer>;
  takeBatch(size: number | string, inProgress?: boolean): Promise<Answer>;
  /** Polls for jobs to stop. */
  stops(signal?: AbortSignal): Promise<Answer>;
  /** Posts a job's result; an object is sent as JSON, a string as it is. */
  done(job: string, body: unknown, isStream?: boolean): Promise<Answer>;
  doneBatch(body: unknown): Promise<Answer>;
  chunk(job: string, body: unknown): Promise<Answer>;
  ping(jobs?: readonly string[], more?: string): Promise<Answer>;
  alive(): boolean;
  kill(): void;
  /** The signals that the process has seen. */
  signals(): string[];
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Record<string, string>;
}

/** An endpoint whose workers are puppets. */
export interface PuppetEndpoint {
  readonly id: string;
  readonly folder: string;
  /** All puppets that ever started, oldest first. */
  puppets(): Puppet[];
  /** Waits for the n-th puppet (from 0) to have started. */
  puppet(n?: number, withinMs?: number): Promise<Puppet>;
}

// Idles with its environment on file. PUPPET_STUBBORN lets it live on after SIGTERM.
const program = `
import { appendFileSync } from "node:fs";
const say = (line) => appendFileSync(process.env.PUPPET_FILE, JSON.stringify({ pid: process.pid, ...line }) + "\\n");
process.on("SIGTERM", () => {
  say({ signal: "SIGTERM" });
  if (!process.env.PUPPET_STUBBORN) process.exit(0);
});
say({ env: process.env });
setInterval(() => {}, 60_000);
`;

/** Makes an endpoint that keeps one puppet running, unless `settings` say otherwise. */
export async function makePuppets(
  test: Ending,
  server: Target,
  settings: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<PuppetEndpoint> {
  const folder = makeFolder(test);
  const file = join(folder, "puppets.jsonl");
  writeFileSync(join(folder, "worker.mjs"), program);
  const id = await makeEndpoint(
    server,
    folder,
    { workersMin: 1, workersMax: 1, ...settings },
    { dockerStartCmd: ["node", "worker.mjs"], env: { PUPPET_FILE: file, ...env } },
  );
  const lines = () => journal(file).map((line) => JSON.parse(line));
  const puppets = () => lines().flatMap((line) => (line.env ? [makePuppet(line.pid, line.env, lines)] : []));
  test.onTestFinished(() => {
    for (const puppet of puppets()) if (puppet.env.PUPPET_STUBBORN) puppet.kill();
  });
  endWith(test, server, id);
  return { id, folder, puppets, puppet: (n = 0, withinMs = 20_000) => until(() => puppets()[n], withinMs) };
}

/** A job that a puppet holds. */
export interface HeldJob extends PuppetEndpoint {
  readonly endpoint: string;
  readonly worker: Puppet;
  readonly job: string;
  readonly takenAt: number;
  status(): Promise<Body>;
}

/** Makes an endpoint with one puppet, and gives it a job. */
export async function makeHeld(test: Ending, server: Target, policy?: Record<string, unknown>): Promise<HeldJob> {
  const made = await makePuppets(test, server);
  const worker = await made.puppet();
  const job = await submit(server, made.id, { n: 1 }, policy === undefined ? {} : { policy });
  expect((await worker.take()).body?.id).toBe(job);
  const status = () => statusOf(server, made.id, job);
  return { ...made, endpoint: made.id, worker, job, takenAt: Date.now(), status };
}

function makePuppet(pid: number, env: Record<string, string>, lines: () => Body[]): Puppet {
  const own = (name: string) => {
    const value = env[name];
    if (value === undefined) throw new Error(`the worker was given no ${name}`);
    return value;
  };
  const id = own("RUNPOD_POD_ID");
  const asText = (body: unknown) => (typeof body === "string" ? body : JSON.stringify(body));
  const forJob = (name: string, job: string) => own(name).replace("$RUNPOD_POD_ID", id).replace("$ID", job);
  const takeUrl = (inProgress: boolean) =>
    `${own("RUNPOD_WEBHOOK_GET_JOB").replace("$ID", id)}&job_in_progress=${inProgress ? 1 : 0}`;
  const pingUrl = (jobs: readonly string[] = [], more = "") => {
    const held = jobs.length === 0 ? "" : `job_id=${jobs.join(",")}&`;
    return `${own("RUNPOD_WEBHOOK_PING").replace("$RUNPOD_POD_ID", id)}?${held}runpod_version=1.12.0${more}`;
  };
  const doneUrl = (job: string, isStream = false) =>
    `${forJob("RUNPOD_WEBHOOK_POST_OUTPUT", job)}&isStream=${isStream}`;
  const chunkUrl = (job: string) => `${forJob("RUNPOD_WEBHOOK_POST_STREAM", job)}&isStream=false`;
  const batchUrl = () =>
    own("RUNPOD_WEBHOOK_POST_OUTPUT").replace("/job-done/", "/job-done-batch/").replace("$RUNPOD_POD_ID/$ID", id);
  const stopUrl = () => own("RUNPOD_WEBHOOK_GET_JOB").replace("/job-take/", "/job-stop/").replace("$ID", id);

  async function workerCall(
    method: string,
    url: string,
    body?: string | Uint8Array<ArrayBuffer>,
    { signal, headers = {} }: CallOptions = {},
  ): Promise<Answer> {
    const label: Record<string, string> =
      body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" };
    const reply = await fetch(url, {
      method,
      headers: { authorization: own("RUNPOD_AI_API_KEY"), ...label, ...headers },
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await reply.text();
    return { status: reply.status, text, body: readJson(text) };
  }

  return {
    id,
    pid,
    env,
    call: workerCall,
    takeUrl,
    doneUrl,
    chunkUrl,
    pingUrl,
    stopUrl,
    take: ({ inProgress = false, signal } = {}) => workerCall("GET", takeUrl(inProgress), undefined, { signal }),
    takeBatch: (size, inProgress = false) =>
      workerCall("GET", `${takeUrl(inProgress).replace("/job-take/", "/job-take-batch/")}&batch_size=${size}`),
    stops: (signal) => workerCall("GET", stopUrl(), undefined, { signal }),
    done: (job, body, isStream) => workerCall("POST", doneUrl(job, isStream), asText(body)),
    doneBatch: (body) => workerCall("POST", batchUrl(), asText(body)),
    chunk: (job, body) => workerCall("POST", chunkUrl(job), asText(body)),
    ping: (jobs, more) => workerCall("GET", pingUrl(jobs, more)),
    alive: () => isAlive(pid),
    kill: () => {
      if (isAlive(pid)) process.kill(pid, "SIGKILL");
    },
    signals: () => lines().flatMap((line) => (line.pid === pid && line.signal ? [line.signal] : [])),
  };
}

function readJson(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether a process runs. A zombie does not count. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !journal(`/proc/${pid}/stat`)[0]?.includes(") Z ");
  } catch {
    return false;
  }
}
