import { type ActName, actNames } from "../acts/acts.js";
import { faults } from "../audit/auditor.js";
import type { Outcome } from "./campaign.js";

const sentencesMax = 20;
const words = {
  lost: "lost",
  doubleHeld: "double-held",
  needless: "run again for no reason",
  wrong: "wrong states or answers",
  webhooks: "webhooks missing or wrong",
} as const;

/** The outcome as a table, followed by a sentence for each fault. */
export function table(outcome: Outcome, title: string): string {
  const { kills, killsPerMinute, acts, counts } = outcome;
  const rows: [string, number][] = [
    ...Object.entries(counts),
    ...actNames.map((name): [ActName, number] => [name, acts[name]]),
    ["kills", kills],
    ["kills a minute", killsPerMinute],
    ...faults.map((name): [string, number] => [words[name], outcome.faults[name].length]),
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [
    title,
    ...rows.map(([name, count]) => `  ${name.padEnd(width)}  ${String(count).padStart(8)}`),
    ...faults.flatMap((name) =>
      outcome.faults[name].slice(0, sentencesMax).map((sentence) => `${words[name]}: ${sentence}`),
    ),
  ].join("\n");
}
