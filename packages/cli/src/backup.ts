import { chmodSync, copyFileSync, existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { exits, Failure } from "./exit.js";
import { makeFolder, reasonOf } from "./files.js";

const database = "millrace.db";
/** What only this machine's running server needs, or makes anew. */
const leftOut = new Set([database, "lock", "clock", "url", "reserve", ".writable", ".gitignore"]);

/**
 * Copies a data directory while its server runs: its database as of one moment, its keys, and what identifies it. Not the
 * workers' logs and homes, nor the contents of network volumes. Returns the names of what it has copied.
 */
export async function backUp(dataDir: string, target: string): Promise<string[]> {
  if (!existsSync(join(dataDir, database)))
    throw new Failure(exits.usage, `There is no ${database} in ${dataDir}.`, "--data FOLDER");
  claim(target);
  const source = new DatabaseSync(join(dataDir, database), { readOnly: true });
  try {
    await backup(source, join(target, database));
    chmodSync(join(target, database), 0o600);
    return [database, ...copyFiles(dataDir, target)];
  } catch (error) {
    throw uncopied(error, dataDir, target);
  } finally {
    source.close();
  }
}

/** Says why nothing was copied, and empties the target so that the next try may use it. */
function uncopied(error: unknown, from: string, to: string): Failure {
  for (const name of readdirSync(to)) rmSync(join(to, name), { force: true });
  return new Failure(exits.failed, `${from} could not be copied to ${to}: ${reasonOf(error)}.`, "millrace doctor");
}

/** Makes a data directory from a backup. */
export function restore(source: string, dataDir: string): string[] {
  if (!existsSync(join(source, database)))
    throw new Failure(exits.usage, `There is no ${database} in ${source}: it is no backup.`, "millrace backup FOLDER");
  const damage = damageOf(join(source, database));
  if (damage !== undefined)
    throw new Failure(exits.failed, `${join(source, database)} is damaged: ${damage}.`, "Restore an older backup.");
  claim(dataDir);
  try {
    copyFileSync(join(source, database), join(dataDir, database));
    chmodSync(join(dataDir, database), 0o600);
    return [database, ...copyFiles(source, dataDir)];
  } catch (error) {
    throw uncopied(error, source, dataDir);
  }
}

/** What is wrong with a database; undefined if nothing is. */
function damageOf(file: string): string | undefined {
  const check = new DatabaseSync(file, { readOnly: true });
  try {
    const { quick_check: verdict } = check.prepare("PRAGMA quick_check").get() as { quick_check: string };
    return verdict === "ok" ? undefined : verdict;
  } catch (error) {
    return reasonOf(error);
  } finally {
    check.close();
  }
}

/** A new or empty directory, for its owner alone. */
function claim(folder: string): void {
  makeFolder(folder);
  if (readdirSync(folder).length > 0)
    throw new Failure(exits.usage, `${folder} is not empty.`, "Name a new folder, so that nothing is overwritten.");
  chmodSync(folder, 0o700);
}

/** Copies a directory's own files, such as its keys. */
function copyFiles(from: string, to: string): string[] {
  const names = readdirSync(from)
    .filter((name) => !leftOut.has(name) && !/^millrace\.db-|^lock-|\.new$/.test(name))
    .filter((name) => statSync(join(from, name)).isFile());
  for (const name of names) {
    copyFileSync(join(from, name), join(to, name));
    chmodSync(join(to, name), 0o600);
  }
  return names.sort();
}
