// `npm run faults`: runs the fault tests' campaign for as long as you like, with a seed of your choice.
import { join } from "node:path";
import { bin, build, cache, installPackages, main, run } from "./set-up.mjs";

const usage = `Usage: npm run faults [-- options]

Lets clients and workers loose on real servers, and breaks everything at random moments: kill -9 and SIGSTOP of servers
and workers, connections that are reset, frozen, slowed and half closed, a wall clock that jumps an hour, a disk without
a free byte (as root), and with PostgreSQL its connections and the database itself. Then it compares what was
acknowledged with what is stored, what ran, which states were seen, and which webhooks came.

  --minutes N      how long (default 10), in rounds of about a minute and a half
  --seed N         repeat the choices of another run (default: random, and printed)
  --database KIND  sqlite (default) or postgres
  --servers N      how many servers (default 1; up to 3 with postgres)
  --help           print this

The stock Python worker takes part if .cache/venv has it (\`npm test\` makes it), or MILLRACE_TEST_VENV names it.

Exit codes: 0 nothing was lost, held twice or wrong · 1 something was, or it could not be run · 2 wrong option`;

const isPositive = (word) => Number(word) > 0;
const options = {
  "--minutes": { value: "10", fits: isPositive },
  "--seed": { value: undefined, fits: isPositive },
  "--database": { value: "sqlite", fits: (word) => ["sqlite", "postgres"].includes(word) },
  "--servers": { value: "1", fits: (word) => ["1", "2", "3"].includes(word) },
};
const words = process.argv.slice(2);
let wrong;
let isHelp = false;
while (words.length > 0 && wrong === undefined) {
  const word = words.shift();
  if (word === "--help" || word === "-h") isHelp = true;
  else if (Object.hasOwn(options, word) && options[word].fits(words[0])) options[word].value = words.shift();
  else wrong = `${word} is not an option, or its value is invalid`;
}
if (options["--database"].value === "sqlite" && options["--servers"].value !== "1")
  wrong ??= "SQLite supports only one server; several need --database postgres";

if (wrong !== undefined) {
  console.error(`${wrong}; \`npm run faults -- --help\` lists the options.`);
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
      MILLRACE_TEST_MINUTES: options["--minutes"].value,
      MILLRACE_TEST_DATABASE: options["--database"].value,
      MILLRACE_TEST_SERVERS: options["--servers"].value,
      MILLRACE_TEST_VENV: process.env.MILLRACE_TEST_VENV ?? join(cache, "venv"),
      ...(options["--seed"].value === undefined ? {} : { MILLRACE_TEST_SEED: options["--seed"].value }),
    };
    const args = ["run", "--disable-console-intercept=true", "tests/faults/faults.test.ts"];
    const { code } = await run(join(bin, "vitest"), args, { env, stdio: ["ignore", "inherit", "inherit"] });
    return code === 0 ? 0 : 1;
  });
}
