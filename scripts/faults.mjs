// `npm run faults`: the fault tests' campaign for as long as you like, with a seed of yours.
import { join } from "node:path";
import { bin, build, cache, installPackages, main, run } from "./set-up.mjs";

const usage = `Usage: npm run faults [-- options]

Lets clients and workers loose on a real server, kills the server and workers at random moments,
and compares what was acknowledged with what is stored and what ran.

  --minutes N   how long (default 10)
  --seed N      repeat the choices of another run (default: random, and printed)
  --help        print this

The stock Python worker takes part where .cache/venv has it (\`npm test\` makes it), or MILLRACE_TEST_VENV names it.

Exit codes: 0 nothing was lost, held twice or wrong · 1 something was, or it could not be run · 2 unknown option`;

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
  console.error(`${unknown} is no option, or lacks its number; \`npm run faults -- --help\` lists the options.`);
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
      MILLRACE_TEST_VENV: process.env.MILLRACE_TEST_VENV ?? join(cache, "venv"),
      ...(options["--seed"] === undefined ? {} : { MILLRACE_TEST_SEED: options["--seed"] }),
    };
    const args = ["run", "--disable-console-intercept=true", "tests/faults/faults.test.ts"];
    const { code } = await run(join(bin, "vitest"), args, { env, stdio: ["ignore", "inherit", "inherit"] });
    return code === 0 ? 0 : 1;
  });
}
