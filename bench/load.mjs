// A load generator: `node load.mjs <JSON of a plan>` sends the same POST over and over on keep-alive connections, and
// prints {"count", "seconds", "bad", "ids"?}. In a process of its own, so that the bench does not share its event loop.
import http from "node:http";
import { performance } from "node:perf_hooks";

const { url, headers = {}, body, connections, seconds, count: countMax, keepsIds } = JSON.parse(process.argv[2]);
const agent = new http.Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
const bytes = Buffer.from(body);
const options = {
  method: "POST",
  agent,
  headers: { "content-type": "application/json", "content-length": bytes.length, ...headers },
};

let sent = 0;
let count = 0;
let bad = 0;
const ids = [];
const beganAt = performance.now();
const isOver = () => (countMax === undefined ? performance.now() - beganAt >= seconds * 1_000 : sent >= countMax);

function send() {
  sent += 1;
  return new Promise((resolve) => {
    const request = http.request(url, options, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part) => (text += part));
      reply.on("end", () => {
        if (reply.statusCode === 200) count += 1;
        else bad += 1;
        if (keepsIds) ids.push(JSON.parse(text).id);
        resolve();
      });
    });
    request.on("error", () => {
      bad += 1;
      resolve();
    });
    request.end(bytes);
  });
}

async function connection() {
  while (!isOver()) await send();
}

await Promise.all(Array.from({ length: connections }, connection));
const took = (performance.now() - beganAt) / 1_000;
agent.destroy();
process.stdout.write(JSON.stringify({ count, bad, seconds: took, ...(keepsIds ? { ids } : {}) }));
