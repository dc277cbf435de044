// A load generator: `node load.mjs <JSON of a plan>` sends one POST over and over on keep-alive connections, and prints
// {"count", "bad", "seconds"}. In a process of its own, so that the bench does not share its event loop, and on plain
// sockets: an HTTP client takes as long as the servers that are measured, and would measure itself.
import { connect } from "node:net";
import { performance } from "node:perf_hooks";

const { url, headers = {}, body, connections, seconds, count: countMax } = JSON.parse(process.argv[2]);
const { hostname, port, host, pathname } = new URL(url);
const head = Object.entries({
  host,
  "content-type": "application/json",
  "content-length": Buffer.byteLength(body),
  ...headers,
}).map(([name, value]) => `${name}: ${value}\r\n`);
const request = Buffer.from(`POST ${pathname} HTTP/1.1\r\n${head.join("")}\r\n${body}`);

let sent = 0;
let count = 0;
let bad = 0;
const beganAt = performance.now();
const isOver = () => (countMax === undefined ? performance.now() - beganAt >= seconds * 1_000 : sent >= countMax);

/** One connection with one request on it at a time, until it is over. */
function run() {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let received = "";
    const next = () => {
      if (isOver()) return socket.end(resolve);
      sent += 1;
      return socket.write(request);
    };
    socket.setEncoding("latin1").on("data", (part) => {
      received += part;
      const bodyAt = received.indexOf("\r\n\r\n") + 4;
      if (bodyAt < 4) return;
      const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received)?.[1]);
      if (!(length >= 0)) return reject(new Error(`An answer has no length: ${received.slice(0, 500)}`));
      if (received.length < bodyAt + length) return;
      if (received.startsWith("HTTP/1.1 200 ")) count += 1;
      else bad += 1;
      received = "";
      next();
    });
    socket.once("connect", next).once("error", reject);
  });
}

await Promise.all(Array.from({ length: connections }, run));
process.stdout.write(JSON.stringify({ count, bad, seconds: (performance.now() - beganAt) / 1_000 }));
