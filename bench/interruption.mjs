// Interrupted, the bench ends what it started, in order; a second signal ends it at once.
import { constants } from "node:os";
import { endAll } from "./scope.mjs";

let isEnding = false;

export const isInterrupted = () => isEnding;

/** Runs `work`; when a signal comes, its scopes are ended and so is this process. */
export async function interruptible(work) {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(128 + constants.signals[signal]));
  try {
    return await work();
  } catch (error) {
    // what fails because it is being ended needs no words
    if (isEnding) await new Promise(() => {});
    throw error;
  }
}

async function end(code) {
  if (isEnding) process.exit(code);
  isEnding = true;
  process.stderr.write("\nStopping what was started …\n");
  await endAll();
  process.exit(code);
}
