// Runs the rows one after the other, prints their table, and keeps it in RESULTS.md.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { coldStart } from "./cold-start.mjs";
import { durableRun } from "./durable-run.mjs";
import { conditions, isMissed, loadNow, table } from "./table.mjs";
import { wholeJobs } from "./whole-jobs.mjs";

const rows = {
  cold: () => coldStart({ rounds: 11 }),
  durable: () => durableRun({ rounds: 7, seconds: 3, connections: 64 }),
  whole: () => wholeJobs({ rounds: 5, count: 2_000, connections: 64 }),
};
export const rowNames = Object.keys(rows);

/** Resolves with the exit code: 1 where a row misses its bound. Only a whole run is kept. */
export async function bench(names = rowNames) {
  const loadBefore = loadNow();
  const measured = [];
  for (const name of names) {
    console.error(`Measuring ${name} …`);
    measured.push(await rows[name]());
  }
  const text = `${conditions(loadBefore).join("\n")}\n\n${table(measured)}\n`;
  console.log(text);
  if (names.length === rowNames.length) {
    const head = `# The last run\n\n[README.md](README.md) says what each row means, and what is unequal in it.\n`;
    writeFileSync(join(import.meta.dirname, "RESULTS.md"), `${head}\n${text.replaceAll(/^(?=[A-Z])/gm, "- ")}`);
  }
  return measured.some(isMissed) ? 1 : 0;
}
