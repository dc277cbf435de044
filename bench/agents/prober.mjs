// Asks the same address at a steady slow rate. A request is due whether or not the one before has been answered, and its
// time counts from when it was due: what waits behind a stall has waited, too.
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
    // a timer that came late is this process's affair, not the server's
    const from = Math.max(dueAt, performance.now());
    const answered = ask(url).then(() => times.push({ at: dueAt - beganAt, ms: performance.now() - from }));
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
