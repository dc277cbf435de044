import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { statusOf, submit } from "../e2e/wire.js";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";

let server: TestServer;
let endpoint: string;
/** A waiting job, submitted before any hostile request. */
let witness: string;
const undos: (() => Promise<void> | void)[] = [];
const ending = { onTestFinished: (undo: () => Promise<void> | void) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  ending.onTestFinished(() => server.end());
  endpoint = await makeEndpoint(server, makeHandler(ending), { workersMax: 0 });
  witness = await submit(server, endpoint);
});
afterAll(async () => {
  for (const undo of undos) await undo();
});

/** One answer, as it was received. */
interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/**
 * Sends bytes as they are, followed by a whole request that asks to close, and reads until the server closes. With
 * `patient`, the second request is sent only after the first was answered.
 */
function exchange(bytes: string | Buffer, patient = false): Promise<Answer[]> {
  return new Promise((resolve) => {
    const socket = connect(server.port, "127.0.0.1");
    const parts: Buffer[] = [];
    socket.on("data", (part) => parts.push(part));
    socket.on("error", () => {}); // a refusal may come with a reset
    socket.on("close", () => resolve(answersIn(Buffer.concat(parts).toString("latin1"))));
    socket.write(bytes);
    if (patient) socket.once("data", () => socket.write(lastRequest));
    else socket.write(lastRequest);
  });
}
const lastRequest = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-request-id: last\r\nconnection: close\r\n\r\n";

function answersIn(text: string): Answer[] {
  const answers: Answer[] = [];
  for (let rest = text; rest.length > 0; ) {
    const end = rest.indexOf("\r\n\r\n");
    const head = rest.slice(0, end);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    expect(status, rest.slice(0, 200)).toBeGreaterThan(0);
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    answers.push({ status, head, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

/** The form of every refusal, also for requests that could not be parsed. */
function expectError({ status, head, body }: Answer, expected: number): void {
  expect(status, body).toBe(expected);
  expect(head).toMatch(/^content-type: application\/json/im);
  expect(Object.keys(JSON.parse(body)).sort()).toEqual(["code", "error", "requestId"]);
}

const body = '{"input":{"smuggled":true}}';
const size = body.length;
const hex = size.toString(16);
const run = (headers: string, rest: string) =>
  `POST /v2/${endpoint}/run HTTP/1.1\r\nhost: localhost\r\nauthorization: ${server.key}\r\n${headers}\r\n${rest}`;
const get = (headers: string, target = "/healthz") => `GET ${target} HTTP/1.1\r\nhost: localhost\r\n${headers}\r\n`;
const chunked = (start: string) => run("transfer-encoding: chunked\r\n", `${start}\r\n${body}\r\n0\r\n\r\n`);

const refused: { it: string; bytes: () => string | Buffer; status?: number }[] = [
  { it: "two Host headers", bytes: () => get("host: b\r\n") },
  { it: "two Host headers in one", bytes: () => "GET /healthz HTTP/1.1\r\nhost: localhost, b\r\n\r\n" },
  { it: "a second Host header after 2,100 other headers", bytes: () => get(`${"a:b\r\n".repeat(2_100)}host: b\r\n`) },
  { it: "no Host header", bytes: () => "GET /healthz HTTP/1.1\r\n\r\n" },
  { it: "a target that is a whole URL", bytes: () => get("", "http://elsewhere/healthz") },
  { it: "a target that is a star", bytes: () => "OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n" },
  { it: "a length and chunks", bytes: () => run("content-length: 5\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n") },
  { it: "chunks and a length", bytes: () => run("transfer-encoding: chunked\r\ncontent-length: 5\r\n", "0\r\n\r\n") },
  { it: "two lengths", bytes: () => run(`content-length: ${size}\r\ncontent-length: ${size + 1}\r\n`, body) },
  { it: "the same length twice", bytes: () => run(`content-length: ${size}\r\ncontent-length: ${size}\r\n`, body) },
  { it: "a list of lengths", bytes: () => run(`content-length: ${size}, ${size}\r\n`, body) },
  { it: "a length with a sign", bytes: () => run(`content-length: +${size}\r\n`, body) },
  { it: "a negative length", bytes: () => run("content-length: -1\r\n", body) },
  { it: "a length too large for any number type", bytes: () => run(`content-length: ${"9".repeat(30)}\r\n`, body) },
  { it: "a folded header", bytes: () => get("x-a: b\r\n c\r\n") },
  { it: "a folded transfer coding", bytes: () => run("transfer-encoding:\r\n chunked\r\n", "0\r\n\r\n") },
  { it: "a blank before a colon", bytes: () => run("transfer-encoding : chunked\r\n", "0\r\n\r\n") },
  { it: "a bare line feed after the request line", bytes: () => "GET /healthz HTTP/1.1\nhost: localhost\r\n\r\n" },
  { it: "a bare line feed after a header", bytes: () => "GET /healthz HTTP/1.1\r\nhost: localhost\nx: y\r\n\r\n" },
  { it: "a bare carriage return", bytes: () => get("x: a\rb: c\r\n") },
  { it: "NUL in a header", bytes: () => get("x: a\0b\r\n") },
  { it: "NUL in a header's name", bytes: () => get("x\0y: a\r\n") },
  { it: "a header of 64 KB", bytes: () => get(`x: ${"x".repeat(64 * 1_024)}\r\n`), status: 431 },
  {
    it: "10,000 headers",
    bytes: () => get(Array.from({ length: 10_000 }, (_, n) => `x${n}: y\r\n`).join("")),
    status: 431,
  },
  { it: "a chunk's extension of control characters", bytes: () => chunked(`${hex};\x01\x02\x7f`) },
  { it: "a chunk's extension of 100 KB", bytes: () => chunked(`${hex};a=${"b".repeat(100_000)}`) },
  {
    it: "a chunk's line that ends in a bare line feed",
    bytes: () => run("transfer-encoding: chunked\r\n", `${hex};a\n`),
  },
  { it: "a chunk of no size", bytes: () => chunked("zz") },
  { it: "a chunk of negative size", bytes: () => chunked(`-${hex}`) },
  { it: "a chunk of size 0x…", bytes: () => chunked(`0x${hex}`) },
  { it: "a chunk size too large for any number type", bytes: () => chunked("f".repeat(18)) },
  { it: "a chunk longer than its announced size", bytes: () => chunked("1") },
  {
    it: "an unknown transfer coding",
    bytes: () => run("transfer-encoding: xchunked\r\n", "0\r\n\r\n"),
    status: 415,
  },
  { it: "chunks twice", bytes: () => run("transfer-encoding: chunked\r\n".repeat(2), "0\r\n\r\n") },
  { it: "chunked as a coding before the last", bytes: () => run("transfer-encoding: chunked, identity\r\n", "") },
  {
    it: "a transfer coding that compresses",
    bytes: () => run("transfer-encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    status: 415,
  },
  {
    it: "a content encoding",
    bytes: () => run(`content-encoding: gzip\r\ncontent-length: ${size}\r\n`, body),
    status: 415,
  },
  { it: "an unknown method", bytes: () => "BREW /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n" },
  {
    it: "a method that no route accepts",
    bytes: () => "PROPFIND /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    status: 404,
  },
  { it: "an HTTP/2 preface", bytes: () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
  { it: "HTTP/1.7", bytes: () => "GET /healthz HTTP/1.7\r\nhost: localhost\r\n\r\n" },
  { it: "a TLS greeting", bytes: () => Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]) },
  { it: "bytes that are not ASCII in the target", bytes: () => Buffer.from(get("", "/v2/\u{1f4a9}/health")) },
];

describe("an ambiguous or unreadable request is refused", () => {
  it.each(refused)("$it", async ({ bytes, status = 400 }) => {
    const before = await inQueue();
    const [first, ...more] = await exchange(bytes());
    expectError(first!, status);
    // Either the connection was closed, or the next reply is to our own last request, with nothing between.
    expect(more.map(({ head }) => /x-request-id: last/i.test(head))).toEqual(more.map(() => true));
    expect(more.length).toBeLessThanOrEqual(1);
    expect(await inQueue()).toBe(before);
  });
});

const inQueue = async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.jobs.inQueue;

describe("an unusual but unambiguous request is served", () => {
  const inside = "GET /v1/endpoints HTTP/1.1\r\nhost: localhost\r\n\r\n";
  const served: { it: string; bytes: () => string; body: RegExp; patient?: boolean }[] = [
    { it: "a chunk's extension", bytes: () => chunked(`${hex};a=b;c="d"`), body: /IN_QUEUE/ },
    {
      it: "trailers, which change nothing",
      bytes: () =>
        run("transfer-encoding: chunked\r\n", `${hex}\r\n${body}\r\n0\r\nhost: b\r\nauthorization: no\r\n\r\n`),
      body: /IN_QUEUE/,
    },
    { it: "an unknown expectation", bytes: () => get("expect: tea\r\n"), body: /ok/ },
    {
      it: "an offer to upgrade to WebSocket",
      bytes: () => get("connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n"),
      body: /ok/,
      patient: true,
    },
    {
      it: "an offer to upgrade to HTTP/2",
      bytes: () => get("connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"),
      body: /ok/,
      patient: true,
    },
    {
      it: "a body on a route that reads none, with a request inside",
      bytes: () => get(`content-length: ${inside.length}\r\n`) + inside,
      body: /ok/,
    },
  ];
  it.each(served)("$it", async ({ bytes, body, patient }) => {
    const [first, last, ...more] = await exchange(bytes(), patient);
    expect(first!.status).toBe(200);
    expect(first!.body).toMatch(body);
    expect(last?.head).toMatch(/x-request-id: last/i);
    expect(more).toEqual([]);
  });

  it("HTTP/1.0, whose connection is closed after the reply unless the client asks otherwise", async () => {
    expect((await exchange("GET /healthz HTTP/1.0\r\n\r\n", true)).map(({ status }) => status)).toEqual([200]);
    const kept = await exchange("GET /healthz HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", true);
    expect(kept.map(({ status }) => status)).toEqual([200, 200]);
  });

  it("HTTP/0.9, which gets no reply, because it is not a valid request", async () => {
    const [only, ...more] = await exchange("GET /healthz\r\n");
    expectError(only!, 400);
    expect(more).toEqual([]);
  });

  it("CONNECT, whose connection is closed", async () => {
    expect(await exchange("CONNECT elsewhere:443 HTTP/1.1\r\nhost: elsewhere:443\r\n\r\n")).toEqual([]);
  });
});

describe("an invalid id is unknown, whatever it contains", () => {
  const long = "x".repeat(10_000);
  const ids: { it: string; id: string; status?: number }[] = [
    { it: "NUL", id: "%00" },
    { it: "NUL inside", id: "a%00b" },
    { it: "a path that leaves its folder", id: "..%2f..%2f..%2fetc%2fpasswd" },
    { it: "a path that leaves its folder with backslashes", id: "..%5c..%5cetc" },
    { it: "line ends", id: "a%0d%0ax-injected:%20yes" },
    { it: "a quote that ends an SQL statement", id: "'%3b%20drop%20table%20job%3b--" },
    { it: "letters of other scripts", id: "%F0%9F%92%A9%D8%A7" },
    { it: "a property that every object has", id: "__proto__" },
    { it: "half a character", id: "%ff%fe", status: 400 },
    { it: "a broken escape", id: "%zz", status: 400 },
    { it: "10,000 characters", id: long, status: 400 },
  ];
  it.each(ids)("$it", async ({ id, status = 404 }) => {
    const targets = [
      `/v2/${id}/health`,
      `/v2/${endpoint}/status/${id}`,
      `/v2/${endpoint}/stream/${id}`,
      `/v1/endpoints/${id}`,
      `/v1/templates/${id}`,
      `/v1/networkvolumes/${id}`,
    ];
    for (const target of targets) {
      const [answer] = await exchange(get(`authorization: ${server.key}\r\n`, target));
      expectError(answer!, status);
      expect(answer!.head).not.toMatch(/x-injected/i);
    }
    for (const call of ["job-take", "job-stop", "ping"]) {
      const [answer] = await exchange(get("authorization: none\r\n", `/v2/${endpoint}/${call}/${id}`));
      expectError(answer!, status === 404 ? 401 : 400);
    }
  });
});

it("after all of it the server has not restarted, its job still waits, and it accepts more", async () => {
  expect(await statusOf(server, endpoint, witness)).toMatchObject({ status: "IN_QUEUE" });
  expect((await statusOf(server, endpoint, await submit(server, endpoint))).status).toBe("IN_QUEUE");
  expect(server.log().match(/"event":"server.ready"/g)).toHaveLength(1);
  expect(server.log()).not.toMatch(/"level":50/);
});
