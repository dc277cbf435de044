import { setTimeout as sleep } from "node:timers/promises";
import type { Job } from "@millrace/worker";

interface Input {
  text?: string;
  /** Milliseconds between two words. */
  pauseMs?: number;
}

/** Yields a text word by word, as a language model would. */
export default async function* speak(
  { text = "the mill grinds what the stream brings", pauseMs = 100 }: Input,
  job: Job,
) {
  for (const word of text.split(/\s+/).filter(Boolean)) {
    yield word;
    // Ends early when the job is cancelled.
    await sleep(pauseMs, undefined, { signal: job.signal });
  }
}

/** The job's output is the list of all words, for clients that don't stream. */
export const options = { aggregate: true };
