// When the bench is interrupted, it ends what it started, in order; a second signal ends it at once.
import { constants } from "node:os";
import { endAll } from "./scope.mjs";

let isEnding = false;

export const isInterrupted = () => isEnding;

/** Runs `work`; a signal ends its scopes, and then this process. */
export async function interruptible(work) {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(128 + constants.signals[signal]));
  try {
    return await work();
  } catch (error) {
    // A failure during the shutdown needs no message.
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
