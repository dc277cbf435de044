import type { CompiledQuery, Kysely } from "kysely";
import type { TextColumns } from "./job-row.js";
import type { Tables } from "./schema.js";

/** Runs compiled statements on a database. */
export interface Runner {
  /** Compiles for this database's dialect; it is never asked to execute. */
  readonly sql: Kysely<Tables>;
  /** SQL for a row version that every write changes; undefined if no other process writes. */
  readonly rowVersion?: string;
  readonly texts: TextColumns;
  read<R>(query: CompiledQuery<R>): Promise<R[]>;
  /** Runs the statements in one commit, in order, and resolves with their rows when that is on disk. */
  write(queries: readonly CompiledQuery[]): Promise<unknown[][]>;
}

/** The first row of a write that returns one. */
export async function writeOne<R>(runner: Runner, query: CompiledQuery<R>): Promise<R> {
  const [rows] = await runner.write([query]);
  return rows![0] as R;
}

/** The same without `undefined`-valued keys: an absent field stays absent. */
export function compact<T extends Record<string, unknown>>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

export const maybe = <T>(value: T | null): T | undefined => value ?? undefined;
