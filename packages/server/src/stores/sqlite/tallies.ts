import type { Tally, TallyReader } from "../../store/index.js";
import { code } from "../tables/job-state.js";
import type { Database } from "./driver.js";
import { prepareOrdered } from "./statement.js";
import type { Gathered } from "./writing/transactions.js";

/** Changes of an endpoint's counts, added up in memory and written once per group. */
export class Tallies implements Gathered {
  readonly #deltas = new Map<number, Record<keyof Tally, number>>();
  readonly #counter: ReturnType<Database["prepare"]>;
  readonly #add;
  #nextPlace: number;
  #savedPlace: number;

  constructor(db: Database) {
    this.#add = prepareOrdered(
      db,
      ["endpointNo", "waiting", "waitingNormal", "running", "completed", "failed", "retried"],
      `INSERT INTO tally (endpoint_no, waiting, waiting_normal, running, completed, failed, retried)
      VALUES (:endpointNo, :waiting, :waitingNormal, :running, :completed, :failed, :retried)
      ON CONFLICT (endpoint_no) DO UPDATE SET waiting = waiting + excluded.waiting,
        waiting_normal = waiting_normal + excluded.waiting_normal, running = running + excluded.running,
        completed = completed + excluded.completed, failed = failed + excluded.failed, retried = retried + excluded.retried`,
    );
    this.#counter = db.prepare("UPDATE counter SET value = ? WHERE name = 'next_place'");
    this.#nextPlace = db.prepare("SELECT value FROM counter WHERE name = 'next_place'").get().value;
    this.#savedPlace = this.#nextPlace;
  }

  /** The next number in the order of all jobs. */
  nextPlace(): number {
    return this.#nextPlace++;
  }

  add(endpointNo: number, delta: Partial<Tally>): void {
    let sum = this.#deltas.get(endpointNo);
    if (!sum) {
      sum = { waiting: 0, waitingNormal: 0, running: 0, completed: 0, failed: 0, retried: 0 };
      this.#deltas.set(endpointNo, sum);
    }
    for (const [name, by] of Object.entries(delta)) sum[name as keyof Tally] += by;
  }

  flush(): void {
    for (const [no, d] of this.#deltas) {
      this.#add.run(no, d.waiting, d.waitingNormal, d.running, d.completed, d.failed, d.retried);
    }
    if (this.#nextPlace !== this.#savedPlace) this.#counter.run(this.#nextPlace);
    this.#savedPlace = this.#nextPlace;
    this.#deltas.clear();
  }

  /** Places drawn in a failed group stay unused: the order may have gaps. */
  discard(): void {
    this.#deltas.clear();
    this.#savedPlace = -1;
  }
}

const none: Tally = { waiting: 0, waitingNormal: 0, running: 0, completed: 0, failed: 0, retried: 0 };

/** Reads of an endpoint's counts. */
export function sqliteTallyReader(db: Database): TallyReader {
  const sql = {
    tally: db.prepare(`SELECT waiting, waiting_normal AS waitingNormal, running, completed, failed, retried
      FROM tally WHERE endpoint_no = ?`),
    waiting: db.prepare(`SELECT coalesce(sum(waiting), 0) AS waiting FROM tally
      WHERE endpoint_no IN (SELECT value FROM json_each(?))`),
    oldest: db.prepare(`SELECT queued_at FROM job
      WHERE endpoint_no = ? AND status = ${code.IN_QUEUE} AND low_priority = 0 ORDER BY place LIMIT 1`),
    holdings:
      db.prepare(`SELECT w.no, (SELECT count(*) FROM job j WHERE j.worker_no = w.no AND j.status = ${code.IN_PROGRESS}) AS held
      FROM worker w WHERE w.endpoint_no = ? AND w.ended_at IS NULL`),
    recount: db.prepare(`SELECT count(*) FILTER (WHERE status = ${code.IN_QUEUE}) AS waiting,
      count(*) FILTER (WHERE status = ${code.IN_QUEUE} AND low_priority = 0) AS waitingNormal,
      count(*) FILTER (WHERE status = ${code.IN_PROGRESS}) AS running FROM job WHERE endpoint_no = ?`),
  };
  const tally = (no: number): Tally => ({ ...none, ...sql.tally.get(no) });
  return {
    tally: async (no) => tally(no),
    waiting: async (nos) => sql.waiting.get(JSON.stringify(nos)).waiting,
    oldestWaiting: async (no) => sql.oldest.get(no)?.queued_at,
    holdings: async (no) => new Map(sql.holdings.all(no).map((row) => [row.no, row.held])),
    recount: async (no) => ({ ...tally(no), ...sql.recount.get(no) }),
  };
}
