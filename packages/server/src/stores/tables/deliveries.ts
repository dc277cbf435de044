import { sql as raw, type Selectable } from "kysely";
import { limits } from "../../limits/index.js";
import type { Attempt, Delivery, DeliveryStore, DeliveryWithAttempts } from "../../store/index.js";
import { endpointsOfPage, heldOrNot, type PageEndpoint, rowsOfPage } from "./delivery-pages.js";
import type { TextColumns } from "./job-row.js";
import { code } from "./job-state.js";
import { maybe, type Runner } from "./runner.js";
import type { Tables } from "./schema.js";

type Row = Selectable<Tables["delivery"]>;

const toDelivery = (row: Row): Delivery => ({
  no: row.no,
  jobNo: row.job_no,
  jobId: row.job_id,
  endpointNo: row.endpoint_no,
  webhookId: row.webhook_id,
  url: row.url,
  tries: row.tries,
  state: row.state,
  nextAt: maybe(row.next_at),
  heldBy: maybe(row.held_by),
});

type AttemptRow = Selectable<Tables["attempt"]>;
const toAttempt = (row: AttemptRow): Attempt => ({
  at: row.at,
  status: maybe(row.status),
  error: maybe(row.error),
  durationMs: row.duration_ms,
  reply: maybe(row.reply),
});

/** The size of a delivery's body without its members' names, computed without reading the texts. */
const bodyBytes = ({ bytes }: TextColumns) =>
  raw<number>`${raw.raw(`
  coalesce((SELECT coalesce(${bytes("o.output")}, 0) + coalesce(${bytes("o.error")}, 0) FROM job_output o
    WHERE o.job_no = delivery.job_no), 0)
  + coalesce((SELECT ${bytes("i.body")} FROM job_input i WHERE i.job_no = delivery.job_no), 0)`)}`;

interface HeadRow {
  readonly endpoint: number;
  readonly first: number | null;
  readonly second: number | null;
  readonly third: number | null;
}

/** Endpoints with pending deliveries, found by one look into the index each, and their first due deliveries. */
function heads(after: number, count: number, now: number) {
  const nth = (
    n: number,
  ) => raw`(SELECT d.no FROM delivery d WHERE d.state = 'pending' AND d.next_at IS NOT NULL AND d.endpoint_no = open.no
    AND d.next_at <= ${now} ORDER BY d.next_at, d.no LIMIT 1 OFFSET ${raw.lit(n)})`;
  return raw<HeadRow>`WITH RECURSIVE open (no, n) AS (
      SELECT (SELECT min(endpoint_no) FROM delivery WHERE state = 'pending' AND next_at IS NOT NULL AND endpoint_no > ${after}), 1
      UNION ALL
      SELECT (SELECT min(endpoint_no) FROM delivery WHERE state = 'pending' AND next_at IS NOT NULL AND endpoint_no > open.no), open.n + 1
      FROM open WHERE open.no IS NOT NULL AND open.n < ${count})
    SELECT open.no AS endpoint, ${nth(0)} AS first, ${nth(1)} AS second, ${nth(2)} AS third
    FROM open WHERE open.no IS NOT NULL`;
}

export function deliveryStore(runner: Runner): DeliveryStore {
  const { sql } = runner;
  const bytes = bodyBytes(runner.texts).as("bytes");
  // a literal: as a parameter it could be any state to the planner, and the index of pending deliveries would not be
  // used
  const pending = sql.selectFrom("delivery").where("state", "=", raw.lit("pending"));
  /** Makes the next sweep visit a job that an earlier sweep skipped because of its delivery. */
  const endWait = (deliveryNo: number) =>
    sql
      .updateTable("job")
      .set({ awaits_delivery: 0 })
      .where((eb) =>
        eb(
          eb.refTuple("endpoint_no", "no"),
          "=",
          eb
            .selectFrom("delivery")
            .select(["endpoint_no", "job_no"])
            .where("no", "=", deliveryNo)
            .$asTuple("endpoint_no", "job_no"),
        ),
      )
      .where("awaits_delivery", "=", 1)
      .compile();
  const withAttempts = async (rows: readonly Row[]): Promise<DeliveryWithAttempts[]> => {
    if (rows.length === 0) return [];
    const nos = rows.map(({ no }) => no);
    const attempts = await runner.read(
      sql.selectFrom("attempt").selectAll().where("delivery_no", "in", nos).orderBy("n").compile(),
    );
    // one that was recorded after the rows were read would stand beside the state before it
    const isOf = (row: Row) => (attempt: AttemptRow) => attempt.delivery_no === row.no && attempt.n <= row.tries;
    return rows.map((row) => ({ ...toDelivery(row), attempts: attempts.filter(isOf(row)).map(toAttempt) }));
  };
  return {
    due: async ({ now, limit, after }) => {
      let query = pending.selectAll().select(bytes).where("next_at", "<=", now);
      query = query.orderBy("next_at").orderBy("no").limit(limit);
      if (after) {
        const { no, nextAt = 0 } = after;
        query = query.where((eb) => eb.or([eb("next_at", ">", nextAt), eb("next_at", "=", nextAt).and("no", ">", no)]));
      }
      return (await runner.read(query.compile())).map((row) => ({ ...toDelivery(row), bytes: row.bytes }));
    },
    heads: async ({ now, afterEndpointNo, endpoints }) => {
      const found = await runner.read<HeadRow>(heads(afterEndpointNo, endpoints, now).compile(sql));
      const nos = found.flatMap(({ first, second, third }) => [first, second, third]).filter((no) => no !== null);
      const query = pending.selectAll().select(bytes).where("no", "in", nos);
      const due = nos.length === 0 ? [] : await runner.read(query.compile());
      const lookedTo = found.length < endpoints ? undefined : found.at(-1)?.endpoint;
      return { due: due.map((row) => ({ ...toDelivery(row), bytes: row.bytes })), lookedTo };
    },
    nextDue: async () => {
      const [row] = await runner.read(pending.select((eb) => eb.fn.min("next_at").as("at")).compile());
      return maybe(row?.at ?? null);
    },
    record: async ({ deliveryNo, attempt, outcome: { state, nextAt } }) => {
      const ended = state === "pending" ? null : attempt.at + attempt.durationMs;
      const recorded = sql.selectFrom("attempt").where("delivery_no", "=", deliveryNo);
      await runner.write([
        sql
          .insertInto("attempt")
          .columns(["delivery_no", "n", "at", "status", "error", "duration_ms", "reply"])
          .expression((eb) =>
            eb
              .selectFrom("delivery")
              .select((s) => [
                "no",
                s("tries", "+", 1).as("n"),
                s.val(attempt.at).as("at"),
                s.val(attempt.status ?? null).as("status"),
                s.val(attempt.error ?? null).as("error"),
                s.val(attempt.durationMs).as("duration_ms"),
                s.val(attempt.reply ?? null).as("reply"),
              ])
              .where("no", "=", deliveryNo)
              // a write whose answer was lost is sent again
              .where((s) => s.not(s.exists(recorded.select("n").where("at", "=", attempt.at)))),
          )
          .compile(),
        sql
          .updateTable("delivery")
          .set({ tries: recorded.select((eb) => eb.fn.countAll<number>().as("tries")) })
          .where("no", "=", deliveryNo)
          .compile(),
        // a retry of the job may have superseded the delivery meanwhile
        sql
          .updateTable("delivery")
          .set({ state, next_at: nextAt ?? null, ended_at: ended, held_by: null })
          .where("no", "=", deliveryNo)
          .where("state", "=", "pending")
          .compile(),
        ...(ended === null ? [] : [endWait(deliveryNo)]),
      ]);
    },
    list: async ({ endpointNos, jobId, ...page }) => {
      const { state, beforeNo, limit } = page;
      const parts: number[][] = [];
      for (let at = 0; at < endpointNos.length; at += limits.endpointsSearchedAtOnce)
        parts.push(endpointNos.slice(at, at + limits.endpointsSearchedAtOnce));
      if (jobId === undefined) {
        const found: PageEndpoint[] = [];
        for (const part of parts) found.push(...(await runner.read(endpointsOfPage(part, page).compile(sql))));
        const endpoints = found.sort((a, b) => b.newest - a.newest).slice(0, limit);
        if (endpoints.length === 0) return [];
        return withAttempts(await runner.read(rowsOfPage<Row>(endpoints, page).compile(sql)));
      }
      const rows: Row[] = [];
      for (const part of parts) {
        let query = sql.selectFrom("delivery").selectAll().where("endpoint_no", "in", part);
        query = query.where("job_id", "=", jobId).where(heldOrNot(state));
        if (state !== undefined && state !== "held") query = query.where("state", "=", state);
        if (beforeNo !== undefined) query = query.where("no", "<", beforeNo);
        rows.push(...(await runner.read(query.orderBy("no", "desc").limit(limit).compile())));
      }
      return withAttempts(rows.sort((a, b) => b.no - a.no).slice(0, limit));
    },
    find: async (webhookId) => {
      const query = sql.selectFrom("delivery").selectAll().where("webhook_id", "=", webhookId);
      const [found] = await withAttempts(await runner.read(query.limit(1).compile()));
      return found;
    },
    redeliver: async ({ deliveryNo, triesMax, now }) => {
      const again = sql
        .updateTable("delivery")
        .set({ state: "pending", next_at: now, ended_at: null, held_by: null })
        .where("no", "=", deliveryNo)
        .where("state", "!=", "pending")
        .where("tries", "<", triesMax)
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom("job")
              .select("job.no")
              .whereRef("job.no", "=", "delivery.job_no")
              .whereRef("job.endpoint_no", "=", "delivery.endpoint_no")
              .where("job.status", ">=", code.COMPLETED),
          ),
        )
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom("delivery as newer")
                .select("newer.no")
                .whereRef("newer.job_no", "=", "delivery.job_no")
                .whereRef("newer.no", ">", "delivery.no"),
            ),
          ),
        )
        .returning("no");
      const [rows] = await runner.write([again.compile()], true); // no entry of the audit log if nothing is sent
      return rows?.length === 1;
    },
    forget: async (before, most) => {
      const ended = sql.selectFrom("delivery").select("no").where("ended_at", "<=", before);
      const old = ended.orderBy("ended_at").orderBy("no").limit(most);
      const [, deleted] = await runner.write([
        sql.deleteFrom("attempt").where("delivery_no", "in", old).compile(),
        sql.deleteFrom("delivery").where("no", "in", old).returning("no").compile(),
      ]);
      return deleted?.length ?? 0;
    },
  };
}
