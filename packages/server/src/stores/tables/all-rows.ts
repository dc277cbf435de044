import { sql as raw, type Selectable } from "kysely";
import { limits } from "../../limits/index.js";
import type { Runner } from "./runner.js";
import type { Tables } from "./schema.js";

type Settled = "endpoint" | "template";

interface Listed {
  readonly no: number;
  readonly version: string;
  readonly bytes: number;
}

/**
 * Reads all rows of a table that `where` keeps (SQL of our own), as `to` makes them. Settings are large, and mostly the
 * same as before: where the database knows a row's version, only rows that changed since the last reading are read and
 * parsed, a few at a time.
 */
export function allRows<Name extends Settled, T>(
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

/** Numbers of rows that are read together. */
function groupsOf(listed: readonly Listed[]): number[][] {
  const groups: number[][] = [];
  let bytesLeft = 0;
  for (const { no, bytes } of listed) {
    if (bytesLeft < bytes || groups.at(-1)?.length === limits.rowsReadAtOnce) {
      groups.push([]);
      bytesLeft = limits.rowBytesReadAtOnce;
    }
    groups.at(-1)?.push(no);
    bytesLeft -= bytes;
  }
  return groups;
}
