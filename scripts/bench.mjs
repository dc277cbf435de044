// `npm run bench`: makes the clone ready, then measures.
import { build, installPackages, main, root } from "./set-up.mjs";

const usage = `Usage: npm run bench [-- row …]

Measures this machine, and prints one table; a whole run also writes it to bench/RESULTS.md.
Takes about two minutes. bench/README.md says what each row means.

  cold      a job on an endpoint without a worker, against the worker started by hand
  durable   submissions a second, against a bare HTTP server
  whole     whole jobs a second
  --help    print this

Exit codes: 0 measured · 1 could not be measured, or a row misses its bound · 2 unknown row`;

const names = process.argv.slice(2);
const rowNames = ["cold", "durable", "whole"];
const unknown = names.find((name) => !["--help", "-h", ...rowNames].includes(name));

if (unknown !== undefined) {
  console.error(`Unknown row ${unknown}; \`npm run bench -- --help\` lists the rows.`);
  process.exitCode = 2;
} else if (names.includes("--help") || names.includes("-h")) {
  console.log(usage);
} else {
  await main(async () => {
    await installPackages();
    await build();
    const { bench } = await import(`${root}/bench/main.mjs`);
    return bench(names.length === 0 ? rowNames : names);
  });
}
