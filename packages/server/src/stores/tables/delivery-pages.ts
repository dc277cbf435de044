import { sql as raw } from "kysely";
import type { DeliveryQuery } from "../../store/index.js";
import { rangeOf } from "./index-range.js";

type Page = Pick<DeliveryQuery, "state" | "beforeNo" | "limit">;

/** An endpoint with deliveries on a page, and the number of the newest. */
export interface PageEndpoint {
  readonly endpoint: number;
  readonly newest: number;
}

/** SQL condition that tells held deliveries from those that are pending. */
export function heldOrNot(state: DeliveryQuery["state"]) {
  if (state === "held") return raw<boolean>`held_by IS NOT NULL`;
  return state === "pending" ? raw<boolean>`held_by IS NULL` : raw<boolean>`1 = 1`;
}

/** The newest deliveries of one endpoint, out of an index's order. */
function newestOf(endpointNo: unknown, { state, beforeNo }: Page, limit: number) {
  const byState = state !== undefined && state !== "held";
  const columns = byState ? ["d.endpoint_no", "d.state"] : ["d.endpoint_no"];
  const values = byState ? [endpointNo, raw.lit(state)] : [endpointNo];
  const order = raw.join([...columns, "d.no"].map((name) => raw`${raw.ref(name)} DESC`));
  return raw`FROM delivery d WHERE ${rangeOf(columns, values, { beforeNo }, "d.no")} AND ${heldOrNot(state)} ORDER BY ${order} LIMIT ${raw.lit(limit)}`;
}

/** Those of some endpoints whose deliveries a page may have: the ones with the newest, as many as it has rows. */
export function endpointsOfPage(endpointNos: readonly number[], page: Page) {
  const own = raw.join(endpointNos.map((no) => raw`(CAST(${no} AS bigint))`));
  return raw<PageEndpoint>`WITH own (no) AS (VALUES ${own})
    SELECT endpoint, newest FROM (
      SELECT own.no AS endpoint, (SELECT d.no ${newestOf(raw.ref("own.no"), page, 1)}) AS newest FROM own) AS firsts
    WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT ${raw.lit(page.limit)}`;
}

/** A page of these endpoints' deliveries. Of each, no more are read than can be on the page after the newest of others. */
export function rowsOfPage<Row>(endpoints: readonly PageEndpoint[], page: Page) {
  const parts = endpoints.map(
    ({ endpoint }, rank) => raw`SELECT * FROM (SELECT d.* ${newestOf(endpoint, page, page.limit - rank)}) AS part`,
  );
  return raw<Row>`${raw.join(parts, raw` UNION ALL `)} ORDER BY no DESC LIMIT ${raw.lit(page.limit)}`;
}
