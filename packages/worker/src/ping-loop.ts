import { parentPort, workerData } from "node:worker_threads";
import { Connection } from "./connection.js";
import { HeldList } from "./held-list.js";
import { limits } from "./limits.js";
import { pause } from "./pause.js";
import { Pinger } from "./pinger.js";
import type { ThreadStart, ThreadWord } from "./pings.js";

// What the pinging thread does, for a worker whose own thread may be busy with a handler.

const { place, apiKey, memory } = workerData as ThreadStart;
const held = new HeldList(memory);
const pinger = new Pinger({ place, connection: new Connection(apiKey), onRefused: () => say("refused") });
let questions = 0;
let isTelling = false;

// At once, too: silence is noticed only of a worker that has pinged.
void tell();
setInterval(() => void tell(), place.pingIntervalMs);

async function tell(): Promise<void> {
  if (isTelling) return;
  isTelling = true;
  const ids = wholeList() ?? ((await isMainAwake()) ? held.ids() : wholeList());
  if (ids) await pinger.ping(ids);
  // Who holds nothing has nothing to lose: it goes silent, and is replaced.
  else if (held.ids().length > 0) await pinger.showLife();
  isTelling = false;
}

/**
 * The list where it is whole however busy the main thread may be: while no take is open it can't have been given a job
 * that it doesn't know of. One that holds no job has no reason to be busy, and answers for itself.
 */
function wholeList(): string[] | undefined {
  // Asked first: what a take has brought is listed before the take counts as over.
  if (held.isAsking) return undefined;
  const ids = held.ids();
  return ids.length > 0 ? ids : undefined;
}

/** Asks the main thread whether it has read whatever has arrived until now. */
async function isMainAwake(): Promise<boolean> {
  const question = ++questions;
  say({ question });
  await pause(limits.mainAnswerMaxMs);
  return held.answered === question;
}

function say(word: ThreadWord): void {
  parentPort?.postMessage(word);
}
