// `npm run migrate`: moves the SQLite database of a data directory into a PostgreSQL database that servers share.
import { build, installPackages, main, SetUpFailure } from "./set-up.mjs";

const usage = `Usage: npm run migrate -- --from DATA_DIR --to postgres://user:password@host:port/database

Copies everything that the SQLite database in DATA_DIR holds into an empty PostgreSQL database, in one transaction,
and checks it: rows, jobs per endpoint and state, bytes of text. Stop the server first. SQLite is only read.
Then start the server with the same data directory and MILLRACE_DATABASE_URL: its keys and its host's name stay there.

  --from DIR   the data directory (default: MILLRACE_DATA_DIR)
  --to URL     the empty database (default: MILLRACE_DATABASE_URL, which other users of this machine cannot read)
  --help       print this

Exit codes: 0 moved · 1 refused or failed, the database is as empty as before · 2 wrong options`;

const given = { "--from": process.env.MILLRACE_DATA_DIR, "--to": process.env.MILLRACE_DATABASE_URL };
const words = process.argv.slice(2);
let mistake;
let isHelp = false;
while (words.length > 0 && mistake === undefined) {
  const word = words.shift();
  if (word === "--help" || word === "-h") isHelp = true;
  else if (!(word in given)) mistake = `Unknown option ${word}`;
  else if (words[0] === undefined || words[0].startsWith("--")) mistake = `${word} needs a value`;
  else given[word] = words.shift();
}
const lacking = Object.keys(given).find((name) => !given[name]);
if (lacking !== undefined) mistake ??= `${lacking} is needed`;
if (given["--to"] && !/^postgres(ql)?:\/\/\S+$/.test(given["--to"]))
  mistake ??= "--to must be a postgres://user:password@host:port/database address";

if (isHelp) {
  console.log(usage);
} else if (mistake !== undefined) {
  console.error(`${mistake}; \`npm run migrate -- --help\` lists the options.`);
  process.exitCode = 2;
} else {
  await main(async () => {
    await installPackages();
    await build();
    const { move, Refused } = await import("./migrate/move.mjs");
    try {
      await move(given["--from"], given["--to"], console.log);
      return 0;
    } catch (error) {
      if (error instanceof Refused) throw new SetUpFailure(error.message);
      throw new SetUpFailure(`Nothing was moved: ${error.message}`);
    }
  });
}
