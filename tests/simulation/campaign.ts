import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runHistory } from "./history.js";
import { shrink } from "./shrink.js";
import type { Script } from "./steps.js";

/** A history that broke a promise, made as short as possible. */
export interface Failure {
  readonly seed: number;
  readonly report: string;
}

/** How many lines before the violation a report shows. */
const linesShown = 60;

/** Runs histories one after another, until one fails or `isOver`. */
export async function runCampaign(
  scripts: Iterable<Script>,
  isOver: (histories: number) => boolean,
  onTrace: (trace: readonly string[]) => void = () => {},
): Promise<{ histories: number; failure: Failure | undefined }> {
  const directory = mkdtempSync(join(tmpdir(), "millrace-simulation-"));
  let histories = 0;
  try {
    for (const script of scripts) {
      if (isOver(histories)) break;
      const { violation, trace } = await runHistory(script, directory);
      onTrace(trace);
      histories++;
      if (violation)
        return { histories, failure: { seed: script.seed, report: await report(script, violation.rule, directory) } };
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  return { histories, failure: undefined };
}

/** The whole trace of a history, for comparisons. */
export async function traceOf(script: Script): Promise<readonly string[]> {
  const directory = mkdtempSync(join(tmpdir(), "millrace-simulation-"));
  try {
    return (await runHistory(script, directory)).trace;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function report(script: Script, rule: string, directory: string): Promise<string> {
  const isBroken = async (shorter: Script) => (await runHistory(shorter, directory)).violation?.rule === rule;
  const shortest = await shrink(script, isBroken);
  const { violation, trace } = await runHistory(shortest, directory);
  const { steps, ...setting } = shortest;
  return [
    `Seed ${script.seed} breaks '${rule}': ${violation?.sentence}`,
    `It needs ${steps.length} of its ${script.steps.length} steps (${JSON.stringify(setting)}):`,
    ...steps.map((step) => `  ${JSON.stringify(step)}`),
    `What happened (milliseconds since the beginning), the last ${linesShown} lines:`,
    ...trace.slice(-linesShown).map((line) => `  ${line}`),
  ].join("\n");
}
