import { sql as raw, type Selectable } from "kysely";
import { limits } from "../../limits/index.js";
import type { Runner } from "./runner.js";
import type { Tables } from "./schema.js";

type SettingsTable = "endpoint" | "template";

interface Sized {
  readonly no: number;
  readonly bytes: number;
}
interface Listed extends Sized {
  readonly version: string;
}

/**
 * Returns a function that reads all rows of a table that match `where` (trusted SQL), converted by `to`. Settings are large
 * and rarely change: if the runner knows row versions, only rows changed since the last call are read and parsed, in groups.
 */
export function allRows<Name extends SettingsTable, T>(
  runner: Runner,
  table: Name,
  where: string,
  to: (row: Selectable<Tables[Name]>) => T,
): () => Promise<T[]> {
  const from = raw`FROM ${raw.table(table)}`;
  const read = (filter: typeof from) =>
    runner.read(raw<Selectable<Tables[Name]>>`SELECT * ${from} WHERE ${filter}`.compile(runner.sql));
  const { rowVersion } = runner;
  if (rowVersion === undefined) return async () => (await read(raw`${raw.raw(where)}`)).map(to);

  const list = raw<Listed>`SELECT no, ${raw.raw(rowVersion)} AS version, octet_length(settings) AS bytes ${from}
    WHERE ${raw.raw(where)} ORDER BY no`.compile(runner.sql);
  let known: ReadonlyMap<number, { readonly version: string; readonly value: T }> = new Map();
  return async () => {
    const before = known;
    const listed = await runner.read(list);
    const versions = new Map(listed.map(({ no, version }) => [no, version]));
    const fresh = new Map([...before].filter(([no, { version }]) => versions.get(no) === version));
    for (const group of groupsOf(listed.filter(({ no }) => !fresh.has(no)))) {
      const rows = await read(raw`no = ANY (${`{${group.join()}}`}::bigint[])`);
      for (const row of rows) {
        const { no } = row as { no: number };
        fresh.set(no, { version: versions.get(no) as string, value: to(row) });
      }
    }
    known = fresh;
    return listed.flatMap(({ no }) => fresh.get(no)?.value ?? []);
  };
}

type KeptTable = SettingsTable | "volume" | "registry_auth";

/** Returns a function that reads the rows with these numbers, a few in each query: their settings may be large. */
export function someRows<Name extends KeptTable, T>(
  runner: Runner,
  table: Name,
  to: (row: Selectable<Tables[Name]>) => T,
): (nos: readonly number[]) => Promise<T[]> {
  const isLarge = table === "endpoint" || table === "template";
  const from = raw`FROM ${raw.table(table)} WHERE no IN`;
  return async (nos) => {
    const found: T[] = [];
    for (let at = 0; at < nos.length; at += limits.rowsReadAtOnce) {
      const some = raw`(${raw.join(nos.slice(at, at + limits.rowsReadAtOnce))})`;
      const sizes = isLarge ? raw`octet_length(settings)` : raw`0`;
      const listed = await runner.read(raw<Sized>`SELECT no, ${sizes} AS bytes ${from} ${some}`.compile(runner.sql));
      for (const group of groupsOf(listed)) {
        const query = raw<Selectable<Tables[Name]>>`SELECT * ${from} (${raw.join(group)})`;
        found.push(...(await runner.read(query.compile(runner.sql))).map(to));
      }
    }
    return found;
  };
}

/** Groups rows to be read in one query, bounded in number and bytes. */
function groupsOf(listed: readonly Sized[]): number[][] {
  const groups: number[][] = [];
  let bytesLeft = 0;
  for (const { no, bytes } of listed) {
    if (groups.length === 0 || bytesLeft < bytes || groups.at(-1)?.length === limits.rowsReadAtOnce) {
      groups.push([]);
      bytesLeft = limits.rowBytesReadAtOnce;
    }
    groups.at(-1)?.push(no);
    bytesLeft -= bytes;
  }
  return groups;
}
