import { type CompiledQuery, sql as raw } from "kysely";
import { FairLine } from "../../domain/fair-line.js";
import { beginningOf, type Span, spans } from "../../domain/usage/meter.js";
import { noPrices, type Prices } from "../../domain/usage/price.js";
import { limits } from "../../limits/index.js";
import type { Deposit, UsageShare, UsageStore, UsageSum } from "../../store/index.js";
import type { Runner } from "./runner.js";

const codes = { hour: 0, day: 1, month: 2 } as const satisfies Record<Span, number>;

/** Usage of an owner: added up by hour, day and month, by resource and for all of a kind together (resource ''). */
export function usageStore(runner: Runner): UsageStore {
  const { sql } = runner;
  const summing = new FairLine(limits.billReadsMax);
  const meterOf = ({ kind, no }: Deposit) => [kind === "volume" ? "volume" : "worker", no] as const;

  /** Moves the mark if it is where it was; `token` tells this move from every other. */
  function move(deposit: Deposit, token: string): CompiledQuery {
    const [kind, no] = meterOf(deposit);
    const { before, mark } = deposit;
    // a mark that is not there yet is made; if it is there after all, `amount` is not -1
    const guard = raw`meter.amount = ${before ?? -1}`;
    return raw`INSERT INTO meter (kind, no, amount, at, token) VALUES (${kind}, ${no}, ${mark.amount}, ${mark.at}, ${token})
      ON CONFLICT (kind, no) DO UPDATE SET amount = excluded.amount, at = excluded.at, token = excluded.token
      WHERE ${guard}`.compile(sql);
  }

  /** Adds to one sum, if this move was made. */
  function add(deposit: Deposit, token: string, span: Span, resource: string, share: UsageShare): CompiledQuery {
    const [meterKind, no] = meterOf(deposit);
    const { kind, ownerNo, gpuType } = deposit;
    const { at, amount, gpuCost, cpuCost, diskCost } = share;
    const values = [kind, ownerNo, resource, codes[span], at, gpuType, amount, gpuCost, cpuCost, diskCost];
    const typed = values.map((value) =>
      typeof value === "number" ? raw`CAST(${value} AS bigint)` : raw`CAST(${value} AS text)`,
    );
    return raw`INSERT INTO usage (kind, owner_no, resource, span, at, gpu_type, amount, gpu_cost, cpu_cost, disk_cost)
      SELECT ${raw.join(typed)} FROM meter WHERE kind = ${meterKind} AND no = ${no} AND token = ${token}
      ON CONFLICT (kind, owner_no, span, at, resource, gpu_type) DO UPDATE SET
      amount = usage.amount + excluded.amount, gpu_cost = usage.gpu_cost + excluded.gpu_cost,
      cpu_cost = usage.cpu_cost + excluded.cpu_cost, disk_cost = usage.disk_cost + excluded.disk_cost`.compile(sql);
  }

  return {
    marks: async (kind, nos) => {
      if (nos.length === 0) return new Map();
      const query = sql.selectFrom("meter").select(["no", "amount", "at"]).where("kind", "=", kind);
      const rows = await runner.read(query.where("no", "in", nos).compile());
      return new Map(rows.map(({ no, amount, at }) => [no, { amount, at }]));
    },
    bank: async (deposits) => {
      const statements = deposits.flatMap((deposit) => {
        const token = globalThis.crypto.randomUUID();
        const added = sharesBySpan(deposit.shares).flatMap(({ span, share }) =>
          [deposit.resource, ""].map((resource) => add(deposit, token, span, resource, share)),
        );
        return [move(deposit, token), ...added];
      });
      if (statements.length > 0) await runner.write(statements);
    },
    endedVolumes: async (limit) => {
      const rows = await runner.read(sql.selectFrom("ended_volume").selectAll().orderBy("no").limit(limit).compile());
      return rows.map((row) => ({
        no: row.no,
        id: row.id,
        ownerNo: row.owner_no,
        gbMs: row.gb_ms,
        endedAt: row.ended_at,
      }));
    },
    forgetEndedVolumes: async (nos) => {
      if (nos.length > 0) await runner.write([sql.deleteFrom("ended_volume").where("no", "in", nos).compile()]);
    },
    forgetMarks: async (before, most) => {
      const old = raw<{ kind: string; no: number }>`SELECT kind, no FROM meter WHERE at < ${before}
        AND NOT EXISTS (SELECT 1 FROM worker WHERE meter.kind = 'worker' AND worker.no = meter.no)
        AND NOT EXISTS (SELECT 1 FROM volume WHERE meter.kind = 'volume' AND volume.no = meter.no) LIMIT ${most}`;
      const rows = await runner.read(old.compile(sql));
      for (const kind of ["worker", "volume"]) {
        const nos = rows.filter((row) => row.kind === kind).map(({ no }) => no);
        if (nos.length === 0) continue;
        await runner.write([
          sql.deleteFrom("meter").where("kind", "=", kind).where("no", "in", nos).where("at", "<", before).compile(),
        ]);
      }
      return rows.length;
    },
    sums: async ({ kind, ownerNo, stretches, byResource, resource, limit }) => {
      if (stretches.length === 0) return [];
      const which =
        resource !== undefined ? raw`resource = ${resource}` : byResource ? raw`resource <> ''` : raw`resource = ''`;
      const rows = stretches.map(
        ({ bucket, span, from, to, isTaken }) =>
          raw`(${raw.lit(bucket)}, ${raw.lit(codes[span])}, CAST(${from} AS bigint), CAST(${to} AS bigint), ${raw.lit(isTaken ? -1 : 1)})`,
      );
      // CROSS JOIN: SQLite goes through the stretches and looks each up, and does not read all usage first
      const query = raw<SumRow>`WITH stretch (bucket, span, from_at, to_at, factor) AS (VALUES ${raw.join(rows)})
        SELECT bucket, resource, gpu_type, CAST(sum(factor * amount) AS bigint) AS amount,
        CAST(sum(factor * gpu_cost) AS bigint) AS gpu_cost, CAST(sum(factor * cpu_cost) AS bigint) AS cpu_cost,
        CAST(sum(factor * disk_cost) AS bigint) AS disk_cost
        FROM stretch CROSS JOIN usage WHERE kind = ${kind} AND owner_no = ${ownerNo} AND ${which}
        AND usage.span = stretch.span AND at >= from_at AND at < to_at
        GROUP BY bucket, resource, gpu_type HAVING sum(factor * amount) <> 0
        OR sum(factor * (gpu_cost + cpu_cost + disk_cost)) <> 0
        ORDER BY bucket, resource, gpu_type LIMIT ${limit + 1}`;
      return (await summing.do(ownerNo, () => runner.read(query.compile(sql)))).map(toSum);
    },
    prices: async () => {
      const rows = await runner.read(sql.selectFrom("price").selectAll().compile());
      const of = (kind: string) => rows.find((row) => row.kind === kind)?.cost ?? 0;
      const gpus = rows.filter(({ kind }) => kind === "gpu").map(({ name, cost }) => [name, cost]);
      return rows.length === 0
        ? noPrices
        : { gpus: Object.fromEntries(gpus), vcpu: of("vcpu"), memoryGb: of("memoryGb"), volumeGb: of("volumeGb") };
    },
    savePrices: async ({ gpus, ...others }: Prices) => {
      const rows = [
        ...Object.entries(gpus).map(([name, cost]) => ({ kind: "gpu", name, cost })),
        ...Object.entries(others).map(([kind, cost]) => ({ kind, name: "", cost })),
      ];
      await runner.write([sql.deleteFrom("price").compile(), sql.insertInto("price").values(rows).compile()]);
    },
  };
}

interface SumRow {
  readonly bucket: number;
  readonly resource: string;
  readonly gpu_type: string;
  readonly amount: number;
  readonly gpu_cost: number;
  readonly cpu_cost: number;
  readonly disk_cost: number;
}
const toSum = (row: SumRow): UsageSum => ({
  bucket: row.bucket,
  resource: row.resource,
  gpuType: row.gpu_type,
  amount: row.amount,
  gpuCost: row.gpu_cost,
  cpuCost: row.cpu_cost,
  diskCost: row.disk_cost,
});

/** The shares of each hour, and what they add to their days and months. */
function sharesBySpan(shares: readonly UsageShare[]): { span: Span; share: UsageShare }[] {
  return spans.flatMap((span) => {
    const sums = new Map<number, UsageShare>();
    for (const share of shares) {
      const at = beginningOf(span, share.at);
      const sum = sums.get(at);
      sums.set(at, {
        at,
        amount: (sum?.amount ?? 0) + share.amount,
        gpuCost: (sum?.gpuCost ?? 0) + share.gpuCost,
        cpuCost: (sum?.cpuCost ?? 0) + share.cpuCost,
        diskCost: (sum?.diskCost ?? 0) + share.diskCost,
      });
    }
    return [...sums.values()].map((share) => ({ span, share }));
  });
}
