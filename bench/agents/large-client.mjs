// Sends large bodies, several at a time, and reports how fast they were accepted.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { obey } from "../obey.mjs";

const agent = new Agent({ keepAlive: true });

async function call(url, headers, body) {
  const all = { "content-type": "application/json", "content-length": body.length, ...headers };
  const reply = await new Promise((resolve, reject) => {
    request(url, { method: "POST", headers: all, agent }).once("response", resolve).once("error", reject).end(body);
  });
  return { status: reply.statusCode, retryAfter: Number(reply.headers["retry-after"] ?? 1), answer: await text(reply) };
}

/** Printable text of a length, as JSON: `{"input":{"data":"…"}}`. */
const bodyOf = (open, close, bytes) =>
  Buffer.from(open + "abcdefghijklmnopqrstuvwxyz012345".repeat(Math.ceil(bytes / 32)).slice(0, bytes) + close);

const bodies = new Map();

obey({
  /** Makes the bodies beforehand, because that takes time, too. */
  prepare(kinds) {
    for (const { name, open, close, bytes } of kinds) bodies.set(name, bodyOf(open, close, bytes));
  },
  /** Sends a body to each address, all at once; a temporary refusal is retried when the reply says so. */
  async send({ urls, headers, body: name }) {
    const body = bodies.get(name);
    const beganAt = performance.now();
    let refused = 0;
    const sendOne = async (url) => {
      for (;;) {
        const { status, retryAfter, answer } = await call(url, headers, body);
        if (status === 200) return answer;
        if (status !== 503) throw new Error(`${url} was answered ${status} ${answer}`);
        refused += 1;
        await sleep(retryAfter * 1_000);
      }
    };
    const answers = await Promise.all(urls.map(sendOne));
    return { answers, refused, seconds: (performance.now() - beganAt) / 1_000 };
  },
});
