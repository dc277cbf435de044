import http from "node:http";
import type { AddressInfo } from "node:net";

/** A call of a worker as the stub saw it. */
export interface Call {
  readonly name: string;
  readonly jobId: string | undefined;
  readonly query: URLSearchParams;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read into bodies of any shape
  readonly body: any;
  /** The status of the reply; 0 if the stub disconnected. */
  status: number;
}

/** True for pings that list exactly these jobs, joined by commas, or no list if none are given. */
export const isPingOf = (ids: string | undefined) => (call: Call) =>
  call.name === "ping" && (call.query.get("job_id") ?? undefined) === ids;

/** The answer to the next call of a kind, instead of the usual one. "hang up" breaks the connection. */
export type Answer = "hang up" | { status: number; headers?: Record<string, string>; text?: string };

interface Poll {
  readonly call: Call;
  readonly response: http.ServerResponse;
}

const workerId = "worker0stub00a";
const token = "secret-of-the-worker";
const methods: Record<string, string> = {
  "job-take": "GET",
  "job-take-batch": "GET",
  "job-stop": "GET",
  ping: "GET",
  "job-stream": "POST",
  "job-done": "POST",
  "job-done-batch": "POST",
};

/** A strict server of the worker protocol for tests: it records every call, and every breach of the protocol. */
export class StubServer {
  readonly calls: Call[] = [];
  readonly breaches: string[] = [];
  readonly #server = http.createServer((request, response) => void this.#receive(request, response));
  readonly #answers = new Map<string, Answer[]>();
  readonly #jobs: object[] = [];
  #stops: string[] = [];
  #take: Poll | undefined;
  #stop: Poll | undefined;
  #watchers: Array<() => void> = [];
  #port = 0;

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Goes away like a crashed server; `start` brings it back at the same address. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    this.#take = undefined;
    this.#stop = undefined;
    await closed;
  }

  environment(more: Record<string, string> = {}): Record<string, string> {
    const base = `http://127.0.0.1:${this.#port}/v2/endpoint0stub0`;
    const query = `gpu=none&token=${token}`;
    return {
      RUNPOD_POD_ID: workerId,
      RUNPOD_ENDPOINT_ID: "endpoint0stub0",
      RUNPOD_AI_API_KEY: token,
      RUNPOD_WEBHOOK_GET_JOB: `${base}/job-take/$ID?${query}`,
      RUNPOD_WEBHOOK_POST_OUTPUT: `${base}/job-done/$RUNPOD_POD_ID/$ID?${query}`,
      RUNPOD_WEBHOOK_POST_STREAM: `${base}/job-stream/$RUNPOD_POD_ID/$ID?${query}`,
      RUNPOD_WEBHOOK_PING: `${base}/ping/$RUNPOD_POD_ID`,
      RUNPOD_PING_INTERVAL: "1000",
      ...more,
    };
  }

  /** Gives jobs to the open take, or to the next ones. */
  give(...jobs: object[]): void {
    this.#jobs.push(...jobs);
    this.#answerTake();
  }

  /** Names jobs to stop, in the open stop call or the next one. */
  stopJobs(...ids: string[]): void {
    this.#stops.push(...ids);
    this.#answerStop();
  }

  /** Answers the next calls of a kind differently. */
  answer(name: string, ...answers: Answer[]): void {
    this.#answers.set(name, [...(this.#answers.get(name) ?? []), ...answers]);
  }

  /** Answers the open take with 204, as at the end of its 20 s or for a worker that is stopping. */
  releaseTake(): void {
    if (this.#take) reply(this.#take, { status: 204 });
    this.#take = undefined;
  }

  /** The first call, past or future, for which a question is true. */
  async seen(question: (call: Call) => boolean): Promise<Call> {
    for (;;) {
      const found = this.calls.find(question);
      if (found) return found;
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  /** The final report on a job: its body, in whichever call it came. */
  async result(jobId: string): Promise<Call["body"]> {
    const ofJob = (call: Call) =>
      call.name === "job-done-batch" ? call.body.find((each: { id: string }) => each.id === jobId) : call.body;
    const isResult = (call: Call) =>
      call.status === 200 &&
      ((call.name === "job-done" && call.jobId === jobId && call.body.status === undefined) ||
        (call.name === "job-done-batch" && ofJob(call) !== undefined));
    return ofJob(await this.seen(isResult));
  }

  /** All calls of one kind so far. */
  named(...names: string[]): Call[] {
    return this.calls.filter((call) => names.includes(call.name));
  }

  async #receive(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://stub");
    const [, , , name = "", worker, jobId] = url.pathname.split("/");
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const text = Buffer.concat(parts).toString("utf8");
    const call: Call = { name, jobId, query: url.searchParams, text, body: parsed(text), status: -1 };
    this.#check(request, call, worker);
    const answer = this.#answers.get(name)?.shift();
    if (answer) reply({ call, response }, answer);
    else if (name.startsWith("job-take")) this.#hold({ call, response });
    else if (name === "job-stop") {
      this.#stop = { call, response };
      this.#answerStop();
    } else reply({ call, response }, { status: 200, text: "{}" });
    this.calls.push(call);
    for (const watch of this.#watchers.splice(0)) watch();
  }

  #check(request: http.IncomingMessage, call: Call, worker: string | undefined): void {
    const expect = (isSo: boolean, what: string) => isSo || this.breaches.push(`${call.name}: ${what}`);
    expect(request.method === methods[call.name], `method ${request.method}`);
    expect(request.headers.authorization === token, "authorization");
    expect(worker === workerId, `worker ${worker}`);
    if (call.name !== "ping") expect(call.query.get("token") === token, "token");
    if (call.name.startsWith("job-take")) {
      expect(["0", "1"].includes(call.query.get("job_in_progress") ?? ""), "job_in_progress");
      expect(this.#take === undefined, "a second take while one is open");
    }
    if (call.name === "job-take-batch") expect(Number(call.query.get("batch_size")) > 0, "batch_size");
    if (call.name === "ping")
      expect(call.query.has("status") || /^millrace-/.test(call.query.get("runpod_version") ?? ""), "version");
    if (/^job-(done|stream)$/.test(call.name))
      expect(/^(true|false)$/.test(call.query.get("isStream") ?? ""), "isStream");
    if (request.method === "POST") expect(call.body !== undefined, `a body that is not JSON: ${call.text}`);
  }

  #hold(poll: Poll): void {
    this.#take = poll;
    poll.response.on("close", () => {
      if (this.#take === poll) this.#take = undefined;
    });
    this.#answerTake();
  }

  #answerTake(): void {
    const poll = this.#take;
    if (!poll || this.#jobs.length === 0) return;
    this.#take = undefined;
    const isBatch = poll.call.name === "job-take-batch";
    const jobs = this.#jobs.splice(0, isBatch ? Number(poll.call.query.get("batch_size")) : 1);
    reply(poll, { status: 200, text: JSON.stringify(isBatch ? jobs : jobs[0]) });
  }

  #answerStop(): void {
    if (!this.#stop || this.#stops.length === 0) return;
    reply(this.#stop, { status: 200, text: JSON.stringify({ jobsToStop: this.#stops }) });
    this.#stops = [];
    this.#stop = undefined;
  }
}

function reply({ call, response }: Poll, answer: Answer): void {
  call.status = answer === "hang up" ? 0 : answer.status;
  if (answer === "hang up") response.destroy();
  else response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers }).end(answer.text);
}

function parsed(text: string): unknown {
  try {
    return text === "" ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
