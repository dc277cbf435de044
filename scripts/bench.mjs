// `npm run bench`: prepares the clone and the machine, then measures.
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rows } from "../bench/rows.mjs";
import { installMachineNeeds } from "./machine.mjs";
import { build, installPackages, locked, main, readText, root, run, SetUpFailure, withProgress } from "./set-up.mjs";

const usage = `Usage: npm run bench [-- options]

Measures this machine beside its peers, and prints one table; a whole run also writes it to bench/RESULTS.md.
Takes about half an hour. bench/README.md says what each row means.

  --rows a,b        these rows only
  --rounds N        rounds of each side (default 5)
  --quick           small figures, to see that all works: two short rounds
  --database NAME   sqlite, postgres or both (default both)
  --profile ROW     profiles the server under the load of run, whole, balanced or large, and prints where its time goes
  --help            print this

Rows:
${rows.map(({ name, words }) => `  ${name.padEnd(17)} ${words}`).join("\n")}

Exit codes: 0 measured · 1 could not be measured, or a row misses its bound · 2 unknown option`;

const machineNeeds = [
  { probe: ["redis-server", "--version"], debian: "redis-server" },
  { probe: ["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb"], debian: "postgresql" },
  { probe: ["sh", "-c", "PATH=$PATH:/usr/sbin nginx -v"], debian: "nginx" },
];

function readOptions(words) {
  const options = { names: rows.map(({ name }) => name), rounds: undefined, isQuick: false, database: "both" };
  const known = options.names;
  const checks = {
    "--rows": (text) => {
      options.names = text.split(",");
      return options.names.every((name) => known.includes(name));
    },
    "--rounds": (text) => {
      options.rounds = Number(text);
      return Number.isInteger(options.rounds) && options.rounds > 0;
    },
    "--database": (text) => {
      options.database = text;
      return ["sqlite", "postgres", "both"].includes(text);
    },
    "--profile": (text) => {
      options.profile = text;
      return ["run", "whole", "balanced", "large"].includes(text);
    },
  };
  while (words.length > 0) {
    const [word, given] = words.shift().split("=");
    if (word === "--help" || word === "-h") options.isHelp = true;
    else if (word === "--quick") options.isQuick = true;
    else {
      const value = given ?? words.shift();
      if (value === undefined || checks[word]?.(value) !== true) return { mistake: `${word} ${value ?? ""}`.trim() };
    }
  }
  const databases = options.database === "both" ? ["sqlite", "postgres"] : [options.database];
  return { ...options, databases };
}

/** Only the bench needs the peers' packages: they are installed beside it, from its own package.json. */
async function installPeers() {
  const folder = join(root, "bench");
  const stamp = join(folder, "node_modules", ".millrace-stamp");
  const wanted = `${process.platform}-${process.arch}-${process.versions.modules} ${readText(join(folder, "package.json"))}`;
  if (readText(stamp) === wanted) return;
  await locked(async () => {
    if (readText(stamp) === wanted) return;
    if (existsSync(stamp)) rmSync(stamp);
    const args = ["install", "--prefix", folder, "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
    const { code, output } = await withProgress("Installing the peers", () => run("npm", args));
    if (code !== 0) throw new SetUpFailure("npm could not install the packages that the bench compares with:", output);
    writeFileSync(stamp, wanted);
  });
}

const options = readOptions(process.argv.slice(2));
if (options.mistake !== undefined) {
  console.error(
    `${options.mistake} is not an option, or its value is invalid; \`npm run bench -- --help\` lists them.`,
  );
  process.exitCode = 2;
} else if (options.isHelp) {
  console.log(usage);
} else {
  await main(async (disarm) => {
    await installPackages();
    await build();
    await installMachineNeeds("The benchmarks", machineNeeds);
    await installPeers();
    disarm();
    const { bench } = await import("../bench/main.mjs");
    const { profile } = await import("../bench/profile.mjs");
    return options.profile === undefined ? bench(options) : profile(options);
  });
}
