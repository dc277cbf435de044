import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { Connection } from "./connection.js";
import { limits } from "./limits.js";
import { pause } from "./pause.js";
import { Pinger } from "./pinger.js";
import { flags, type HeldChange, type ThreadStart, type ThreadWord } from "./pings.js";

// The thread that pings for a worker whose own thread may be busy with a handler.

const { place, apiKey, ids, flags: shared } = workerData as ThreadStart;
const held = new Set(ids);
const pinger = new Pinger({ place, connection: new Connection(apiKey), onRefused: () => say("refused") });
let questions = 0;
let isTelling = false;

setInterval(() => void tell(), place.pingIntervalMs);

async function tell(): Promise<void> {
  if (isTelling) return;
  isTelling = true;
  if (isListWhole() || (await isMainAwake()) || isListWhole()) await pinger.ping([...held]);
  // Who holds nothing has nothing to lose: it goes silent, and is replaced.
  else if (held.size > 0) await pinger.showLife();
  isTelling = false;
}

/**
 * True where the main thread, busy as it may be with a job, can't have been given another that it doesn't know of.
 * One that holds no job has no reason to be busy, and answers for itself.
 */
function isListWhole(): boolean {
  // Read first: when a take has ended, the changes that it brought are there already.
  const isAsking = Atomics.load(shared, flags.isAsking) === 1;
  catchUp();
  return !isAsking && held.size > 0;
}

/** Asks the main thread whether it has read what has arrived until now. */
async function isMainAwake(): Promise<boolean> {
  const question = ++questions;
  say({ question });
  await pause(limits.mainAnswerMaxMs);
  const isAnswered = Atomics.load(shared, flags.answered) === question;
  catchUp();
  return isAnswered;
}

/** Reads changes only here, not as they come: a busy worker must not wake this thread for each job. */
function catchUp(): void {
  if (!parentPort) return;
  for (;;) {
    const received = receiveMessageOnPort(parentPort) as { message: HeldChange } | undefined;
    if (!received) return;
    const { id, isHeld } = received.message;
    if (isHeld) held.add(id);
    else held.delete(id);
  }
}

function say(word: ThreadWord): void {
  parentPort?.postMessage(word);
}
