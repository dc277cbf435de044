import { connect } from "node:net";
import { expect } from "vitest";
import { call, type TestServer, until } from "../harness.js";

/** The address to call, and the key to use. */
export type Target = Pick<TestServer, "url" | "key">;

/** One status reply, loosely typed: each test checks its content. */
// biome-ignore lint/suspicious/noExplicitAny: replies are judged by the tests, not by the compiler
export type Body = any;

/** A call whose reply is kept as its original text. */
export async function textCall(
  server: Target,
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; text: string }> {
  const reply = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${server.key}`, ...headers },
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
  });
  return { status: reply.status, headers: reply.headers, text: await reply.text() };
}

/** A well-formed job id that belongs to no job. */
export const unknownJob = "01890a5d-ac96-774b-bcce-b302099a8057-u1";

/** Submits a job to `/run`, and resolves with its id. */
export async function submit(
  server: Target,
  endpoint: string,
  input: unknown = {},
  rest: Record<string, unknown> = {},
): Promise<string> {
  const made = await call(server, "POST", `/v2/${endpoint}/run`, { input, ...rest });
  if (made.status !== 200) throw new Error(`run: ${made.status} ${JSON.stringify(made.body)}`);
  return made.body.id;
}

/** The status body of a job; throws if the status is not 200. */
export async function statusOf(server: Target, endpoint: string, job: string): Promise<Body> {
  const reply = await call(server, "GET", `/v2/${endpoint}/status/${job}`);
  if (reply.status !== 200) throw new Error(`status: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}

/** Waits until a job has one of the statuses, and resolves with its status body. */
export function reach(server: Target, endpoint: string, job: string, status: string, withinMs = 20_000): Promise<Body> {
  let last: Body;
  return until(async () => {
    last = await statusOf(server, endpoint, job);
    return last.status === status ? last : false;
  }, withinMs).catch(() => {
    throw new Error(`not ${status} within ${withinMs} ms: ${JSON.stringify(last)}`);
  });
}

/** The health body of an endpoint. */
export async function healthOf(server: Target, endpoint: string): Promise<Body> {
  const reply = await call(server, "GET", `/v2/${endpoint}/health`);
  if (reply.status !== 200) throw new Error(`health: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body;
}

/** Resolves at a given time. Tests wait on the clock only where the contract defines a time. */
export function reachTime(atMs: number): Promise<boolean> {
  return until(() => Date.now() >= atMs, atMs - Date.now() + 5_000);
}

/** Whether a call is still unanswered after some round trips to the server. */
export async function isHeld(server: Target, endpoint: string, asked: Promise<unknown>): Promise<boolean> {
  let answered = false;
  asked.then(
    () => (answered = true),
    () => (answered = true),
  );
  for (let turns = 0; turns < 5; turns++) await healthOf(server, endpoint);
  return !answered;
}

/** Checks a refusal: its status, and the form that all error replies share. */
export function expectRefusal(reply: { status: number; headers: Headers; body: Body }, status: number, words?: RegExp) {
  expect(reply.status, JSON.stringify(reply.body)).toBe(status);
  expect(reply.headers.get("content-type")).toMatch(/^application\/json/);
  expect(Object.keys(reply.body).sort()).toEqual(["code", "error", "requestId"]);
  expect(reply.body.error).toMatch(/\S/);
  expect(reply.body.code).toMatch(/^[A-Z][A-Z_]*$/);
  expect(reply.body.requestId).toBe(reply.headers.get("x-request-id"));
  expect(JSON.stringify(reply.body)).not.toMatch(/\n\s+at |node_modules|SELECT |\.js:\d/);
  if (words) expect(reply.body.error).toMatch(words);
}

/** An open socket on which the test writes the bytes of a request. */
export interface RawConnection {
  write(part: string | Uint8Array): Promise<void>;
  /** All data received so far. */
  received(): string;
  closed(): boolean;
  /** Waits for a complete status line, and resolves with its code. */
  status(withinMs?: number): Promise<number>;
  /** Waits for the whole body of the reply (by its Content-Length, or the close). */
  body(withinMs?: number): Promise<string>;
  end(): void;
}

/** Opens a socket to the server. Errors count as a close, because a refusal may arrive with a reset. */
export async function openRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let closed = false;
  socket.on("data", (data) => (text += data.toString("utf8")));
  socket.on("close", () => (closed = true));
  socket.on("error", () => (closed = true));
  await until(() => socket.readyState === "open" || closed);
  return {
    write: (part) =>
      new Promise<void>((done) => {
        if (closed || socket.destroyed) return done();
        const written = () => {
          socket.off("close", written);
          done();
        };
        socket.once("close", written);
        socket.write(part, written);
      }),
    received: () => text,
    closed: () => closed,
    status: (withinMs) => until(() => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0) || false, withinMs),
    body: (withinMs) =>
      until(() => {
        const split = text.indexOf("\r\n\r\n");
        if (split < 0) return closed ? "" : false;
        const length = Number(/content-length: (\d+)/i.exec(text.slice(0, split))?.[1] ?? Number.NaN);
        const rest = text.slice(split + 4);
        return closed || Buffer.byteLength(rest) >= length ? rest : false;
      }, withinMs),
    end: () => socket.destroy(),
  };
}

/** One server-sent event. */
export interface SentEvent {
  readonly event: string;
  readonly id: string | undefined;
  readonly data: string;
}

/** Reads a reply as server-sent events until it ends, or until `enough` returns true. */
export async function readEvents(
  reply: Response,
  enough: (events: readonly SentEvent[]) => boolean = () => false,
): Promise<SentEvent[]> {
  const events: SentEvent[] = [];
  if (reply.body === null) return events;
  let text = "";
  for await (const part of reply.body.pipeThrough(new TextDecoderStream())) {
    text += part.replaceAll("\r\n", "\n");
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = readEvent(text.slice(0, end));
      text = text.slice(end + 2);
      if (event) events.push(event);
    }
    if (enough(events)) break;
  }
  return events;
}

function readEvent(block: string): SentEvent | undefined {
  const field = (name: string) =>
    block
      .split("\n")
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
  const data = field("data");
  if (data.length === 0 && field("event").length === 0) return undefined; // a comment that keeps the connection open
  return { event: field("event")[0] ?? "message", id: field("id")[0], data: data.join("\n") };
}

/** The head of a raw request, including the key. */
export function headOf(server: TestServer, method: string, path: string, ...more: string[]): string {
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${server.port}`,
    `Authorization: ${server.key}`,
    ...more,
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}
