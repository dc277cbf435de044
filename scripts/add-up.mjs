// Adds up what the named gears of tests counted last, as the line `N passed, N failed`.
import { join } from "node:path";
import { cache, readText } from "./set-up.mjs";

const tallies = process.argv.slice(2).map((gear) => {
  const text = readText(join(cache, `tally-${gear}.json`));
  return text === undefined ? { passed: 0, failed: 1 } : JSON.parse(text); // one that did not come to its end has failed
});
const sum = (name) => tallies.reduce((total, tally) => total + tally[name], 0);
console.log(`${sum("passed")} passed, ${sum("failed")} failed`);
