import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, freePort, startServer, type TestServer, until } from "../harness.js";
import { type Ending, makeRunning } from "./handlers.js";

// docs/guide/observability.md
const traceId = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${traceId}-b7ad6b7169203331-01`;

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
}

/** A collector of OTLP over HTTP, and a receiver of webhooks. */
interface Listener {
  readonly url: string;
  readonly spans: Span[];
  readonly headers: Record<string, unknown>[];
  readonly webhooks: { traceparent: unknown }[];
}

async function listen(end: (undo: () => void) => void): Promise<Listener> {
  const port = await freePort();
  const listener: Listener = { url: `http://127.0.0.1:${port}`, spans: [], headers: [], webhooks: [] };
  const server = createServer((request, reply) => {
    let text = "";
    request.setEncoding("utf8").on("data", (part) => (text += part));
    request.once("end", () => {
      if (request.url === "/v1/traces") {
        listener.headers.push(request.headers);
        for (const { scopeSpans } of JSON.parse(text).resourceSpans)
          for (const { spans } of scopeSpans) listener.spans.push(...spans);
      } else listener.webhooks.push({ traceparent: request.headers.traceparent });
      reply.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  end(() => {
    server.closeAllConnections();
    server.close();
  });
  return listener;
}

const handler = "export default (input, job) => ({ traceparent: job.traceparent ?? null, asked: input });";

describe("With a collector", () => {
  const undos: (() => void)[] = [];
  let listener: Listener;
  let server: TestServer;
  beforeAll(async () => {
    listener = await listen((undo) => undos.push(undo));
    server = await startServer({ MILLRACE_OTLP_URL: listener.url, MILLRACE_OTLP_HEADERS: "x-team=mill,x-key=1=2" });
  });
  afterAll(async () => {
    await server?.end();
    for (const undo of undos) undo();
  });

  const spansOf = (id: string, count: number) =>
    until(() => {
      const spans = listener.spans.filter((span) => span.traceId === id);
      return spans.length >= count && spans;
    });

  async function endpointFor(test: Ending): Promise<string> {
    return makeRunning(test, server, {}, handler);
  }

  it("a client's trace goes through queue, worker start and handler to the webhook", async (test) => {
    const endpoint = await endpointFor(test);
    const webhook = `${listener.url}/hook`;
    const { body } = await call(server, "POST", `/v2/${endpoint}/run`, { input: {}, webhook }, { traceparent });
    const ended = await call(server, "GET", `/v2/${endpoint}/status-sync/${body.id}`);
    const spans = await spansOf(traceId, 5);
    const named = (name: string) => spans.find((span) => span.name === name || span.name.startsWith(`${name} `));
    const [job, wait, start, run, hook] = ["job", "wait", "worker start", "run", "webhook"].map(named);
    expect(job).toMatchObject({ parentSpanId: "b7ad6b7169203331" });
    expect([wait, run, hook].map((span) => span?.parentSpanId)).toEqual(Array(3).fill(job?.spanId));
    expect(start?.parentSpanId).toBe(wait?.spanId);
    expect(ended.body.output.traceparent).toBe(`00-${traceId}-${run?.spanId}-01`);
    expect(listener.webhooks).toEqual([{ traceparent: `00-${traceId}-${hook?.spanId}-01` }]);
    expect(BigInt(job?.endTimeUnixNano ?? 0) - BigInt(job?.startTimeUnixNano ?? 0)).toBeGreaterThan(0n);
    expect(listener.headers[0]).toMatchObject({ "x-team": "mill", "x-key": "1=2" });
  });

  it("a job without one has a trace with its own id, and a failed one says so", async (test) => {
    const endpoint = await makeRunning(test, server, {}, "export default () => { throw new Error('no'); };");
    const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
    const [job] = await spansOf(body.id.replaceAll(/^sync-|-u1$|-/g, ""), 3);
    expect(job).toMatchObject({ name: expect.stringMatching(/^job /), status: { code: 2 } });
    expect(job?.parentSpanId ?? "").toBe("");
  });

  it("a client that does not sample gets none, and an invalid header is ignored", async (test) => {
    const endpoint = await endpointFor(test);
    const quiet = { traceparent: `00-${"ab".repeat(16)}-b7ad6b7169203331-00` };
    const asked = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} }, quiet);
    expect(asked.body.output.traceparent).toMatch(/^00-(ab){16}-[0-9a-f]{16}-00$/);
    const odd = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} }, { traceparent: 'x","id":"y' });
    expect(odd.body.status).toBe("COMPLETED");
    await spansOf(odd.body.id.replaceAll(/^sync-|-u1$|-/g, ""), 3);
    expect(listener.spans.filter((span) => span.traceId === "ab".repeat(16))).toEqual([]);
  });
});

it("Without a collector nothing is traced, and workers get the job as it was sent", async (test) => {
  const server = await startServer();
  test.onTestFinished(() => server.end());
  const endpoint = await makeRunning(test, server, {}, handler);
  const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} }, { traceparent });
  expect(body.output).toEqual({ traceparent: null, asked: {} });
});

it("A collector that is away costs no job, and does not hold up the end of the server", async (test) => {
  const server = await startServer({ MILLRACE_OTLP_URL: `http://127.0.0.1:${await freePort()}` });
  test.onTestFinished(() => server.end());
  const endpoint = await makeRunning(test, server, {}, handler);
  const { body } = await call(server, "POST", `/v2/${endpoint}/runsync`, { input: {} });
  expect(body.status).toBe("COMPLETED");
  expect(await server.stop()).toBe(0);
});
