import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import {
  type AddressInfo,
  connect as connectTo,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { realTime } from "../../../clock.js";
import { RouteAway } from "../../../domain/workers/worker-address.js";
import { accessTo } from "./access-fixture.js";
import { Cluster } from "./cluster.js";
import { forwardPort } from "./port-forward.js";
import { forAddress, forName, key } from "./tls-fixture.js";

const port = 8_080;
const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
  vi.restoreAllMocks();
});

/** Listens on a port of loopback until the test ends. */
async function listening(server: Server | TcpServer): Promise<number> {
  server.on("connection", (socket: Socket) => endings.push(() => socket.destroy()));
  server.listen(0, "127.0.0.1");
  endings.push(() => server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** An API server, and what it does with a forwarded port. */
async function apiServer(then: (socket: WebSocket) => void): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer().on("upgrade", (request, socket, head) => {
    asked.push(`${request.url} ${request.headers.authorization ?? ""}`.trim());
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      for (const channel of [0, 1]) accepted.send(Buffer.from([channel, port & 255, port >> 8]));
      then(accepted);
    });
  });
  return { url: `http://127.0.0.1:${await listening(server)}`, asked };
}

/** An API server that refuses. */
async function refusing(status: number, reason = "", refusals = Number.POSITIVE_INFINITY): Promise<string> {
  let left = refusals;
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer().on("upgrade", (request, socket, head) => {
    if (left-- > 0) {
      const text = JSON.stringify({ kind: "Status", reason, message: `refused: ${reason}` });
      socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
    } else sockets.handleUpgrade(request, socket, head, () => {});
  });
  return `http://127.0.0.1:${await listening(server)}`;
}

async function forwarded(url: string, given: Parameters<typeof accessTo>[1] = {}): Promise<Duplex> {
  const stream = await forwardPort(new Cluster(accessTo(url, given)), "/api/v1/namespaces/n/pods/p", port, 1);
  endings.push(() => stream.destroy());
  return stream;
}

/** What a stream says until it ends. */
async function textOf(stream: Duplex): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const data = (text: string) => Buffer.concat([Buffer.from([0]), Buffer.from(text)]);
const complaint = (text: string) => Buffer.concat([Buffer.from([1]), Buffer.from(text)]);
const endOf = async (stream: Duplex) => ((await once(stream.resume(), "error")) as [NodeJS.ErrnoException])[0];

it("What is written comes back from the pod's port, and its end ends the stream", async () => {
  const { url, asked } = await apiServer((socket) => {
    socket.on("message", (message: Buffer) => {
      socket.send(message);
      socket.close();
    });
  });
  const stream = await forwarded(url, { credential: async () => ({ token: "ours" }) });
  stream.write("to and fro");
  expect(await textOf(stream)).toBe("to and fro");
  expect(asked).toEqual([`/api/v1/namespaces/n/pods/p/portforward?ports=${port} Bearer ours`]);
});

it("A large piece goes in messages of a bounded size", async () => {
  const lengths: number[] = [];
  const { url } = await apiServer((socket) => socket.on("message", (part: Buffer) => lengths.push(part.length - 1)));
  const stream = await forwarded(url);
  await new Promise((sent) => stream.write(Buffer.alloc(1_000_000), sent));
  await expect.poll(() => lengths.reduce((sum, each) => sum + each, 0)).toBe(1_000_000);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(256 * 1_024);
});

it("A reader that takes nothing holds up the pod, and gets all of it later", async () => {
  let sent = 0;
  const { url } = await apiServer((socket) => {
    const send = () => {
      if (sent === 4_000) socket.close();
      else if (socket.readyState === socket.OPEN)
        socket.send(data("x".repeat(16 * 1_024)), () => {
          sent++;
          setImmediate(send);
        });
    };
    send();
  });
  const stream = await forwarded(url);
  stream.once("readable", () => {}); // it begins, and is not read
  let before = -1;
  await expect
    .poll(
      () => {
        const isStuck = sent === before;
        before = sent;
        return isStuck;
      },
      { interval: 300, timeout: 10_000 },
    )
    .toBe(true);
  expect(sent).toBeLessThan(3_000); // the rest of 64 MB waits in the pod
  expect((await textOf(stream)).length).toBe(4_000 * 16 * 1_024);
});

it("A port that nobody listens on was reached by nothing; a connection that breaks may have been", async () => {
  const refused = "failed to connect to localhost:8080 inside namespace: dial tcp4: connect: connection refused";
  const nobody = await apiServer((socket) => socket.send(complaint(refused)));
  expect(await endOf(await forwarded(nobody.url))).toMatchObject({ message: refused, syscall: "connect" });

  const late = await apiServer((socket) => {
    socket.send(data("HTTP/1.1 200"));
    socket.send(complaint(refused));
  });
  expect((await endOf(await forwarded(late.url))).syscall).toBeUndefined();

  const cut = await apiServer((socket) => socket.terminate());
  const error = await endOf(await forwarded(cut.url));
  expect([error.message, error.syscall]).toEqual(["the connection through the cluster's API server broke", undefined]);
});

it("A reply that came before the connection failed is read to its end, however slowly", async () => {
  let isClosed = false;
  const { url } = await apiServer((socket) => {
    socket.send(data("HTTP/1.1 413 "));
    socket.send(data("Content Too Large"));
    socket.send(complaint("connection reset by peer"));
    socket.close();
    socket.once("close", () => {
      isClosed = true;
    });
  });
  const stream = await forwarded(url);
  stream.once("readable", () => {}); // it begins, and is not read
  await expect.poll(() => isClosed).toBe(true);
  const parts: Buffer[] = [];
  const failed = once(stream, "error");
  stream.on("data", (part) => parts.push(part));
  expect((await failed)[0]).toMatchObject({ message: "connection reset by peer" });
  expect(Buffer.concat(parts).toString()).toBe("HTTP/1.1 413 Content Too Large");
});

it("Only that its pod is gone says something of a worker; anything else that is refused does not", async () => {
  const gone = await listening(createServer());
  for (const end of endings.splice(0)) end();
  await expect(forwarded(`http://127.0.0.1:${gone}`)).rejects.toBeInstanceOf(RouteAway);
  for (const status of [302, 403, 407, 429, 500, 502, 503])
    await expect(forwarded(await refusing(status, "Any"))).rejects.toBeInstanceOf(RouteAway);
  const failed = forwarded(await refusing(404, "NotFound"));
  await expect(failed).rejects.toMatchObject({ syscall: "connect" });
  await expect(failed).rejects.not.toBeInstanceOf(RouteAway);
});

it("An API server or proxy that never answers is given up, and delays nothing else", async () => {
  vi.spyOn(realTime, "abortAfter").mockImplementation(() => AbortSignal.timeout(200));
  let open = 0;
  const listener = createTcpServer((client) => {
    open++;
    client
      .resume()
      .on("error", () => {})
      .on("close", () => open--);
  });
  const mute = await listening(listener);
  await expect(forwarded(`http://127.0.0.1:${mute}`)).rejects.toMatchObject({
    detail: expect.stringMatching(/in time/),
  });
  const { url } = await apiServer(() => {});
  const cluster = new Cluster(accessTo(url, { proxy: `http://127.0.0.1:${mute}` }));
  const many = Array.from({ length: 100 }, () => forwardPort(cluster, "/p", port, 1));
  for (const each of await Promise.allSettled(many)) expect(each.status).toBe("rejected");
  await expect(forwardPort(cluster, "/p", port, 2)).rejects.toThrow(RouteAway);
  await expect.poll(() => open).toBe(0);
});

it("Through a proxy the API server's own name or address is looked for in its certificate", async () => {
  const through = async (cert: string) => {
    const sockets = new WebSocketServer({ noServer: true });
    const server = createSecureServer({ key, cert }).on("upgrade", (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, (accepted) => {
        for (const channel of [0, 1]) accepted.send(Buffer.from([channel, port & 255, port >> 8]));
        accepted.send(data("well"));
        accepted.close();
      }),
    );
    const target = await listening(server);
    const proxy = createServer().on("connect", (_: unknown, client: Socket) => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      join(client, target);
    });
    return forwarded(`https://127.0.0.1:${target}`, { ca: cert, proxy: `http://localhost:${await listening(proxy)}` });
  };
  expect(await textOf(await through(forAddress))).toBe("well");
  await expect(through(forName)).rejects.toMatchObject({ detail: expect.stringMatching(/altname/i) });
});

it("A token that is no longer accepted is renewed once", async () => {
  const renewed: boolean[] = [];
  const credential = async (isRefused = false) => {
    renewed.push(isRefused);
    return { token: "t" };
  };
  await forwarded(await refusing(401, "Unauthorized", 1), { credential });
  expect(renewed).toEqual([false, true]);
  await expect(forwarded(await refusing(401, "Unauthorized"), { credential })).rejects.toMatchObject({
    detail: "refused: Unauthorized",
  });
});

it("The kubeconfig's proxy is used, whether it speaks HTTP or SOCKS", async () => {
  const { url } = await apiServer((socket) => {
    socket.send(data("through"));
    socket.close();
  });
  const seen: string[] = [];
  const http = createServer().on("connect", ({ url: target = "" }, client: Socket) => {
    seen.push(`http ${target}`);
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    join(client, Number(target.split(":")[1]));
  });
  expect(await textOf(await forwarded(url, { proxy: `http://127.0.0.1:${await listening(http)}` }))).toBe("through");

  const socks = createTcpServer((client) => {
    client.once("data", () => {
      client.write(Buffer.from([5, 0])); // no password
      client.once("data", (asked: Buffer) => {
        const target = asked.readUInt16BE(asked.length - 2);
        seen.push(`socks ${target}`);
        client.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
        join(client, target);
      });
    });
  });
  expect(await textOf(await forwarded(url, { proxy: `socks5://127.0.0.1:${await listening(socks)}` }))).toBe("through");
  const target = new URL(url).port;
  expect(seen).toEqual([`http 127.0.0.1:${target}`, `socks ${target}`]);
});

function join(client: Socket, target: number): void {
  const onward = connectTo(target, "127.0.0.1");
  for (const each of [client, onward]) each.on("error", () => {});
  client.pipe(onward).pipe(client);
}
