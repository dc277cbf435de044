import { parentPort, workerData } from "node:worker_threads";
import { Connection } from "../connection.js";
import { limits } from "../limits.js";
import { pause } from "../pause.js";
import { HeldList } from "./held-list.js";
import { Pinger } from "./pinger.js";
import type { ThreadStart, ThreadWord } from "./pings.js";

// The pinging thread, for a worker whose main thread may be busy with a handler.

const { target, apiKey, memory } = workerData as ThreadStart;
const held = new HeldList(memory);
const pinger = new Pinger({ target, connection: new Connection(apiKey), onRefused: () => say("refused") });
let questions = 0;
let isTelling = false;

// The first ping goes at once: silence is only noticed of a worker that has pinged.
void tell();
setInterval(() => void tell(), target.pingIntervalMs);

async function tell(): Promise<void> {
  if (isTelling) return;
  isTelling = true;
  const ids = wholeList() ?? ((await isMainAwake()) ? held.ids() : wholeList());
  if (ids) await pinger.ping(ids);
  // A worker without jobs has nothing to lose: it goes silent and is replaced.
  else if (held.ids().length > 0) await pinger.showLife();
  isTelling = false;
}

/**
 * The list if it is certainly complete, however busy the main thread is: while no take is open, the worker cannot have
 * been given a job that is not listed. A worker without jobs has no reason to be busy, and answers itself.
 */
function wholeList(): string[] | undefined {
  // Checked first: jobs that a take has brought are listed before the take counts as over.
  if (held.isAsking) return undefined;
  const ids = held.ids();
  return ids.length > 0 ? ids : undefined;
}

/** Asks the main thread whether it has read everything that has arrived so far. */
async function isMainAwake(): Promise<boolean> {
  const question = ++questions;
  say({ question });
  await pause(limits.mainAnswerMaxMs);
  return held.answered === question;
}

function say(word: ThreadWord): void {
  parentPort?.postMessage(word);
}
