// Thousands of clients, each waiting for an answer on its own connection. On plain sockets, because this process should
// be idle, too.
import { connect } from "node:net";
import { obey } from "../obey.mjs";

let open = 0;
let answers = 0;
const sockets = [];

/** Sends a request, and repeats it after each answer if `isRepeated`. Resolves once it is sent. */
function call(url, request, isRepeated) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  sockets.push(socket);
  socket.on("data", (part) => {
    answers += 1;
    // An answer without a body arrives in one part: 204, no job.
    if (isRepeated && part.toString("latin1").startsWith("HTTP/1.1 204 ")) socket.write(request);
    else socket.destroy(new Error(`An unexpected answer: ${part.toString("latin1").slice(0, 200)}`));
  });
  socket.once("error", (error) => console.error(error.message));
  socket.once("close", () => {
    open -= 1;
  });
  return new Promise((resolve) => {
    socket.once("connect", () => {
      open += 1;
      socket.write(request, resolve);
    });
  });
}

/** Limits how many open at a time: the system would refuse a thousand connections at once, before the server could. */
async function openAll(calls) {
  for (let at = 0; at < calls.length; at += 100) await Promise.all(calls.slice(at, at + 100).map((each) => each()));
}

const head = (method, path, url, headers) =>
  `${method} ${path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;

obey({
  poll: ({ url, paths }) => openAll(paths.map((path) => () => call(url, head("GET", path, url, {}), true))),
  wait({ url, path, headers, body, count }) {
    const all = { ...headers, "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return openAll(Array(count).fill(() => call(url, head("POST", path, url, all) + body, false)));
  },
  /** How many clients still wait, and how many answers have arrived since the start. */
  end() {
    const found = { open, answers };
    for (const socket of sockets) socket.destroy();
    return found;
  },
});
