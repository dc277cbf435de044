// Requests the same address at a slow, steady rate. A request is sent when it is due, even if the previous one has not
// been answered: so every request that falls into a stall waits for its end, and counts.
import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { obey } from "../obey.mjs";

const agent = new Agent({ keepAlive: true });
let isOver = false;
let probing;

async function probe(url, everyMs) {
  const times = [];
  const open = new Set();
  const beganAt = performance.now();
  for (let n = 1; !isOver; n++) {
    const dueAt = beganAt + n * everyMs;
    await sleep(Math.max(0, dueAt - performance.now()));
    const sentAt = performance.now();
    const answered = ask(url).then(() => times.push({ at: sentAt - beganAt, ms: performance.now() - sentAt }));
    open.add(answered);
    answered.finally(() => open.delete(answered));
  }
  await Promise.all(open);
  return times;
}

const ask = (url) =>
  new Promise((resolve, reject) => {
    get(url, { agent }, (reply) => reply.resume().once("end", resolve)).once("error", reject);
  });

obey({
  begin({ url, everyMs }) {
    isOver = false;
    probing = probe(url, everyMs);
  },
  async end() {
    isOver = true;
    return await probing;
  },
});
