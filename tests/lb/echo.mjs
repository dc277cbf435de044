// The HTTP server that runs as a load-balancing endpoint's worker: it returns each request's data, and misbehaves on
// demand.
import { createHash } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";

const say = (line) => {
  if (process.env.ECHO_FILE)
    appendFileSync(process.env.ECHO_FILE, `${JSON.stringify({ pid: process.pid, ...line })}\n`);
};
const query = (request) => new URL(request.url, "http://worker").searchParams;
const gateOpen = (path) =>
  new Promise((open) => {
    const look = () => (existsSync(path) ? open() : setTimeout(look, 20));
    look();
  });

const routes = {
  "/ping": (_request, reply) => {
    const { ECHO_HEALTH: file } = process.env;
    reply.writeHead(
      file && !existsSync(file) ? 204 : process.env.ECHO_SICK && existsSync(process.env.ECHO_SICK) ? 500 : 200,
    );
    reply.end();
  },
  "/slow": async (request, reply) => {
    await gateOpen(query(request).get("gate"));
    reply.end("done");
  },
  "/die": (request) => {
    say({ died: request.method });
    process.kill(process.pid, "SIGKILL");
  },
  // Dies at the first request that any worker gets, and answers the next.
  "/die-once": (request, reply) => {
    const file = query(request).get("file");
    if (existsSync(file)) return void reply.end(`pid ${process.pid}`);
    appendFileSync(file, "x");
    process.kill(process.pid, "SIGKILL");
  },
  "/die-in-body": (_request, reply) => {
    reply.writeHead(200, { "content-type": "text/plain" });
    reply.write("the beginning");
    setTimeout(() => process.kill(process.pid, "SIGKILL"), 50);
  },
  "/events": async (request, reply) => {
    reply.writeHead(200, { "content-type": "text/event-stream" });
    const prefix = query(request).get("gate");
    for (let n = 0; n < 3; n++) {
      reply.write(`data: ${n}\n\n`);
      await gateOpen(`${prefix}-${n}`);
    }
    reply.end();
  },
  "/head-first": async (request, reply) => {
    reply.writeHead(200, { "x-early": "yes" });
    reply.flushHeaders();
    await gateOpen(query(request).get("gate"));
    reply.end("late");
  },
  "/large": (request, reply) => {
    const size = Number(query(request).get("bytes"));
    const part = Buffer.alloc(65_536, "x");
    let left = size;
    let isTold = false;
    const write = () => {
      while (left > 0) {
        const next = part.subarray(0, Math.min(left, part.length));
        left -= next.length;
        if (!reply.write(next)) return void reply.once("drain", write);
      }
      reply.end();
    };
    reply.once("close", () => !isTold && (isTold = true) && say({ closed: "large", left }));
    write();
  },
  "/sink": (request, reply) => {
    const hash = createHash("sha256");
    let bytes = 0;
    request.on("data", (part) => {
      bytes += part.length;
      hash.update(part);
    });
    request.on("aborted", () => say({ aborted: bytes }));
    request.on("end", () => reply.end(JSON.stringify({ bytes, sha256: hash.digest("hex"), pid: process.pid })));
  },
  // Reads nothing of a body until its gate opens.
  "/stuck-sink": async (request, reply) => {
    say({ stuck: true });
    await gateOpen(query(request).get("gate"));
    routes["/sink"](request, reply);
  },
  "/refuse-body": (_request, reply) => {
    reply.writeHead(413, { "content-type": "text/plain" });
    reply.end("too large");
  },
  "/duplex": (request, reply) => {
    reply.writeHead(200);
    reply.flushHeaders();
    request.pipe(reply);
  },
  "/trailers": (_request, reply) => {
    reply.writeHead(200, { trailer: "x-sum" });
    reply.write("body");
    reply.addTrailers({ "x-sum": "42" });
    reply.end();
  },
  "/hints": (_request, reply) => {
    reply.writeEarlyHints({ link: "</style.css>; rel=preload" });
    reply.end("hinted");
  },
  "/odd-reply": (_request, reply) => {
    reply.writeHead(200, [
      "Set-Cookie",
      "a=1",
      "Set-Cookie",
      "b=2",
      "X-Hop",
      "secret",
      "Connection",
      "X-Hop",
      "Keep-Alive",
      "timeout=9",
      "X-Odd",
      "caf\u00e9",
    ]);
    reply.end("odd");
  },
  "/nothing": (_request, reply) => void reply.writeHead(204).end(),
  "/unchanged": (_request, reply) => void reply.writeHead(304, { etag: '"1"' }).end(),
  "/away": (_request, reply) => void reply.writeHead(302, { location: "/elsewhere?x=1" }).end(),
  "/long-header": (_request, reply) => void reply.writeHead(200, { "x-long": "x".repeat(100_000) }).end(),
  // Answers all waiting requests at one moment, each with this many headers and early hints.
  "/together": async (request) => {
    const { gate, headers, hints } = Object.fromEntries(query(request));
    await gateOpen(gate);
    const hint = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n";
    const head = `HTTP/1.1 200 OK\r\n${"X-Filler: abcdefgh\r\n".repeat(headers)}`;
    request.socket.end(`${hint.repeat(hints)}${head}Content-Length: 2\r\n\r\nok`);
  },
  // Sends exactly these bytes.
  "/raw": (request) => void request.socket.end(Buffer.from(query(request).get("bytes"), "base64url")),
  "/endless-hints": (request) => {
    const hint = Buffer.from("HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n".repeat(500));
    const write = () => {
      if (!request.socket.destroyed) request.socket.write(hint, () => setImmediate(write));
    };
    request.socket.on("error", () => {}).on("close", () => say({ closed: "hints" }));
    write();
  },
  "/garbage": (request) =>
    void request.socket.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
};

function echo(request, reply) {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const { method, url, rawHeaders } = request;
    say({ method, url });
    const text = JSON.stringify({ method, url, rawHeaders, body: Buffer.concat(parts).toString(), pid: process.pid });
    reply.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    reply.end(text);
  });
}

const server = createServer({ keepAliveTimeout: 5_000 }, (request, reply) => {
  const path = request.url.split("?")[0];
  if (path !== "/ping") say({ got: request.method, path });
  (routes[path] ?? echo)(request, reply);
});
server.on("checkContinue", (request, reply) => server.emit("request", request, reply));
// A minimal WebSocket: after the handshake it echoes the bytes that it receives.
server.on("upgrade", (request, socket, head) => {
  if (request.url.startsWith("/no-socket")) {
    socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nConnection: close\r\n\r\nnot me");
    return;
  }
  if (request.url.startsWith("/raw")) return void routes["/raw"](request);
  // Never answers.
  if (request.url.startsWith("/mute-socket")) {
    say({ mute: "open" });
    return void socket
      .resume()
      .on("error", () => {})
      .on("end", () => socket.end())
      .on("close", () => say({ mute: "closed" }));
  }
  const key = request.headers["sec-websocket-key"];
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  say({ socket: "open", authorization: request.headers.authorization ?? null });
  socket.on("close", () => say({ socket: "closed" }));
  socket.on("end", () => socket.end());
  socket.on("error", () => {});
  if (head.length > 0) frames(head, socket);
  socket.on("data", (part) => frames(part, socket));
});

/** Small, unfragmented frames: a client's text is unmasked and sent back; a close is answered. */
function frames(bytes, socket) {
  for (let at = 0; at < bytes.length; ) {
    const opcode = bytes[at] & 0x0f;
    const length = bytes[at + 1] & 0x7f;
    const mask = bytes.subarray(at + 2, at + 6);
    const text = Buffer.from(bytes.subarray(at + 6, at + 6 + length).map((byte, n) => byte ^ mask[n % 4]));
    at += 6 + length;
    socket.write(Buffer.concat([Buffer.from([0x80 | opcode, length]), text]));
    if (opcode === 8) socket.end();
  }
}

process.on("SIGTERM", () => {
  say({ signal: "SIGTERM" });
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
const host = process.env.ECHO_HOST ?? "127.0.0.1";
setTimeout(() => server.listen(Number(process.env.PORT), host), Number(process.env.ECHO_DELAY ?? 0));
