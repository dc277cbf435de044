/** A PostgreSQL server that its maker starts, breaks and removes. */
export interface TestPostgres {
  readonly port: number;
  readonly version: string;
  /** Where its programs are (psql, pg_dump …). */
  readonly bin: string;
  readonly pid: number;
  /** The address of one of its databases; `postgres` is always there. */
  url(database?: string): string;
  /** The last it printed. */
  log(): string;
  /** Starts it again after `stop`. */
  start(): Promise<void>;
  /** SIGINT (in order) unless told otherwise; SIGQUIT and SIGKILL are crashes. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Stops it and removes its folder. */
  end(): Promise<void>;
}

export function startPostgres(options?: {
  binaries?: string | undefined;
  settings?: Record<string, string | number>;
}): Promise<TestPostgres>;
export function debianBinaries(): string | undefined;
export function packagedBinaries(): string;
