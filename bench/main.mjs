// Runs the rows one after another, prints their table, and stores it in RESULTS.md.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { titles, unmeasured, verdict } from "./entries.mjs";
import { interruptible, isInterrupted } from "./interruption.mjs";
import { Refused } from "./millrace.mjs";
import { peerVersions } from "./peers/versions.mjs";
import { Progress } from "./progress.mjs";
import { rows } from "./rows.mjs";
import { within } from "./scope.mjs";
import { describeServices, Services } from "./services.mjs";
import { conditions, loadNow, table } from "./table.mjs";

const sizes = {
  whole: { rounds: 5, seconds: 2, jobs: 5_000, million: 1_000_000, idleSeconds: 45 },
  quick: { rounds: 2, seconds: 1, jobs: 1_000, million: 20_000, idleSeconds: 22 },
};

/** Resolves with the exit code: 1 if a row misses its bound or could not be measured. Only a complete run is stored. */
export const bench = (options) => interruptible(() => within((scope) => measureAll(options, scope)));

async function measureAll({ names, rounds, isQuick, databases }, scope) {
  const loadBefore = loadNow();
  const services = new Services(scope);
  const chosen = rows.filter((row) => names.includes(row.name) && databases.some((database) => isFor(row, database)));
  const progress = new Progress(chosen.length);
  const usable = await usableDatabases(services, databases);
  const settings = { ...sizes[isQuick ? "quick" : "whole"], ...(rounds === undefined ? {} : { rounds }), isQuick };
  const measured = [];
  for (const row of chosen) {
    progress.begin(row.name);
    const entries = await measureRow(row, { ...settings, services, usable, onRound: (words) => progress.say(words) });
    progress.end();
    measured.push({ name: row.name, entries });
  }
  const used = await services.used();
  const lines = [...conditions(loadBefore, databases), ...(await describeServices(used)), ...peerVersions(chosen)];
  const text = `${lines.map((line) => `- ${line}`).join("\n")}\n\n${table(measured)}\n`;
  console.log(text);
  if (chosen.length === rows.length && !isQuick && databases.length === 2) keep(text);
  const all = measured.flatMap(({ entries }) => entries);
  return all.some((entry) => entry.why !== undefined || verdict(entry) === "missed") ? 1 : 0;
}

const isFor = (row, database) => row.databases?.includes(database) ?? true;

/** A row's entries; a database on which it cannot be measured has an entry with the reason. */
async function measureRow(row, { usable, ...settings }) {
  const wanted = Object.keys(usable).filter((database) => isFor(row, database));
  const refused = wanted.flatMap((database) =>
    usable[database] ? [unmeasured(database, row.words, usable[database])] : [],
  );
  const databases = wanted.filter((database) => usable[database] === undefined);
  if (databases.length === 0) return refused;
  return [...(await measureOn(databases, row, settings)), ...refused];
}

/** If a row fails with several databases, each is measured separately, so that the others' figures are not lost. */
async function measureOn(databases, row, settings) {
  try {
    return await within((scope) => row.measure({ ...settings, databases, scope }));
  } catch (error) {
    if (isInterrupted()) throw error;
    console.error(`\n${row.name} failed on ${databases.map((database) => titles[database]).join(" and ")}:`, error);
    if (databases.length === 1)
      return [unmeasured(databases[0], row.words, error.message.split("\n")[0].slice(0, 200))];
    const apart = [];
    for (const database of databases) apart.push(...(await measureOn([database], row, settings)));
    return apart;
  }
}

/** The requested databases; a database that the server refuses has its sentence. */
async function usableDatabases(services, databases) {
  const usable = {};
  for (const database of databases) {
    try {
      await within((scope) => services.startMillrace(scope, database));
      usable[database] = undefined;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      usable[database] = error.message;
      console.error(`Not measured on ${titles[database]}: ${error.message}`);
    }
  }
  return usable;
}

function keep(text) {
  const head = "# The last run\n\n[README.md](README.md) says what each row means, and what is unequal in it.\n";
  writeFileSync(join(import.meta.dirname, "RESULTS.md"), `${head}\n${text}`);
}
