import type { CompiledQuery, Kysely } from "kysely";
import type { TextColumns } from "./job-row.js";
import type { Tables } from "./schema.js";

/** Runs compiled statements on a database. */
export interface Runner {
  /** Compiles for this database's dialect; it never executes. */
  readonly sql: Kysely<Tables>;
  /** SQL for a row version that every write changes; undefined if no other process writes. */
  readonly rowVersion?: string;
  readonly texts: TextColumns;
  read<R>(query: CompiledQuery<R>): Promise<R[]>;
  /**
   * Runs the statements in order, in one commit, and resolves with their rows when it is on disk. With `isGuarded` the
   * others run only if the first one returned a row.
   */
  write(queries: readonly CompiledQuery[], isGuarded?: boolean): Promise<unknown[][]>;
}

/** Runs a write and returns its first row. */
export async function writeOne<R>(runner: Runner, query: CompiledQuery<R>): Promise<R> {
  const [rows] = await runner.write([query]);
  return rows![0] as R;
}

/** A copy without keys whose value is `undefined`: an absent field stays absent. */
export function compact<T extends Record<string, unknown>>(fields: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

export const maybe = <T>(value: T | null): T | undefined => value ?? undefined;
