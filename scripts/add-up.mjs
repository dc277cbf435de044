// Adds up the last counts of the given test gears: a line for each that failed at first or for good, then the line `N passed, N failed`.
import { join } from "node:path";
import { cache, readText } from "./set-up.mjs";

const tallies = process.argv.slice(2).map((gear) => {
  const text = readText(join(cache, `tally-${gear}.json`));
  if (text !== undefined) return JSON.parse(text);
  return { passed: 0, failed: 1, failures: [`FAILED: the ${gear} tests did not finish`] };
});
for (const line of tallies.flatMap((tally) => tally.onlyAlone ?? []))
  console.log(`PASSED ONLY WHEN RUN AGAIN, ALONE: ${line}`);
for (const failure of tallies.flatMap((tally) => tally.failures)) console.log(failure);
const sum = (name) => tallies.reduce((total, tally) => total + tally[name], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
