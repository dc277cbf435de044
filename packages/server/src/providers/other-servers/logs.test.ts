import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import type { LogLine } from "../../domain/workers/log-line.js";
import { limits } from "../../limits/index.js";
import type { LogQuery } from "../../provider.js";
import { logsFrom } from "./logs.js";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function keeper(answer: RequestListener) {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const mark = (workerId: string, path: string) => ({ "x-mark": `${workerId} ${path}` });
  return { host: "127.0.0.1", port, mark };
}

async function read(answer: RequestListener, query: Partial<LogQuery> = {}): Promise<LogLine[]> {
  const lines: LogLine[] = [];
  const asked = { signal: new AbortController().signal, ...query };
  for await (const batch of logsFrom(await keeper(answer), "w1", asked)) lines.push(...batch);
  return lines;
}

const line = (n: number, text = `line ${n}`): LogLine => ({ workerId: "w1", atUs: n, stream: "stdout", text });
const said = (...parts: object[]) => parts.map((part) => `${JSON.stringify(part)}\n`).join("");

it("asks for what is wanted, with a mark, and gives what is said", async () => {
  const asked: unknown[] = [];
  const search = { bytesLeft: 1_000 };
  const lines = await read(
    ({ url, headers }, reply) => {
      asked.push(url, headers.host, headers["x-mark"]);
      reply.end(`\n${said(line(1, "é\u2028\n"), line(2))}\n${said({ bytesLeft: 300 })}`);
    },
    { tail: 5, sinceUs: 7, jobId: "job-1", follow: true, search },
  );
  const path = "/servers/logs/w1?tail=5&sinceUs=7&jobId=job-1&follow=true&bytes=1000";
  expect(asked).toEqual([path, "127.0.0.1", `w1 ${path}`]);
  expect(lines).toEqual([line(1, "é\u2028\n"), line(2)]);
  expect(search).toEqual({ bytesLeft: 300 });
});

it("puts lines together that come in pieces", async () => {
  const bytes = Buffer.from(said(line(1, "ä".repeat(100)), line(2), { bytesLeft: 0 }));
  const lines = await read(async (_, reply) => {
    for (let at = 0; at < bytes.length; at += 7) {
      reply.write(bytes.subarray(at, at + 7));
      await new Promise(setImmediate);
    }
    reply.end();
  });
  expect(lines).toEqual([line(1, "ä".repeat(100)), line(2)]);
});

it.each<[string, RequestListener, RegExp]>([
  ["it refuses", (_, reply) => void reply.writeHead(404).end("no"), /status 404/],
  ["it hangs up at once", ({ socket }) => void socket.destroy(), /does not answer/],
  ["it ends before the end", (_, reply) => void reply.end(said(line(1))), /has hung up/],
  ["a line never ends", (_, reply) => void reply.end("x".repeat(limits.logElsewhereCharsMax + 1)), /too long a line/],
  ["what it says is no JSON", (_, reply) => void reply.end("x\n"), /JSON/],
])("fails if %s", async (_, answer, why) => {
  await expect(read(answer)).rejects.toThrow(why);
});

it("ends when its reader has gone", async () => {
  const leaving = new AbortController();
  let hasGone = false;
  const keeping = await keeper(({ socket }, reply) => {
    socket.once("close", () => (hasGone = true));
    reply.write(said(line(1)));
  });
  const reading = (async () => {
    for await (const _ of logsFrom(keeping, "w1", { follow: true, signal: leaving.signal })) leaving.abort();
  })();
  await expect(reading).rejects.toThrow(/abort/i);
  await expect.poll(() => hasGone).toBe(true);
});
