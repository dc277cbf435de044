// `npm run simulate`: runs random histories in the simulation for as long as you like, from a seed of your choice.
import { join } from "node:path";
import { bin, build, installPackages, main, run } from "./set-up.mjs";

const usage = `Usage: npm run simulate [-- options]

Runs random histories of clients, workers, losses and restarts over the real operations, lines and loops,
with a clock and a scheduler of its own, and checks every promise after each step. A history that breaks one
is made as short as it can be, and printed with its seed.

  --minutes N   how long (default 10)
  --seed N      the first history's seed; the others follow (default: from the time, and printed)
  --help        print this

Exit codes: 0 every promise was kept · 1 one was not, or it could not be run · 2 unknown option`;

const options = { "--minutes": "10", "--seed": undefined };
const words = process.argv.slice(2);
let unknown;
let isHelp = false;
while (words.length > 0 && unknown === undefined) {
  const word = words.shift();
  if (word === "--help" || word === "-h") isHelp = true;
  else if (word in options && Number(words[0]) > 0) options[word] = words.shift();
  else unknown = word;
}

if (unknown !== undefined) {
  console.error(
    `${unknown} is not an option, or its number is missing; \`npm run simulate -- --help\` lists the options.`,
  );
  process.exitCode = 2;
} else if (isHelp) {
  console.log(usage);
} else {
  await main(async () => {
    await installPackages();
    await build();
    const env = {
      ...process.env,
      NODE_ENV: "test",
      MILLRACE_TEST_MINUTES: options["--minutes"],
      MILLRACE_TEST_SEED: options["--seed"] ?? String(Date.now() % 1_000_000_000),
    };
    const args = [
      "run",
      "--disable-console-intercept=true",
      "-t",
      "random histories",
      "tests/simulation/simulation.test.ts",
    ];
    const { code } = await run(join(bin, "vitest"), args, { env, stdio: ["ignore", "inherit", "inherit"] });
    return code === 0 ? 0 : 1;
  });
}
