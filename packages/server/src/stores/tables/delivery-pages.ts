import { sql as raw } from "kysely";
import type { Delivery, DeliveryQuery } from "../../store/index.js";

type Page = Pick<DeliveryQuery, "state" | "beforeNo" | "limit">;

/** An endpoint with deliveries on a page, and the number of the newest. */
export interface PageEndpoint {
  readonly endpoint: number;
  readonly newest: number;
}

/**
 * The newest deliveries of one endpoint first, out of an index's order. The position is compared as a whole, and the rows
 * are checked afterwards: if `endpoint_no = …` were the condition, a database might rather walk through everybody's
 * deliveries until it has found enough, which may be never.
 */
function newestFirst(endpointNo: unknown, { state, beforeNo = Number.MAX_SAFE_INTEGER }: Page, limit: number) {
  if (state === undefined)
    return raw`WHERE (d.endpoint_no, d.no) < (${endpointNo}, ${beforeNo})
      ORDER BY d.endpoint_no DESC, d.no DESC LIMIT ${raw.lit(limit)}`;
  return raw`WHERE (d.endpoint_no, d.state, d.no) < (${endpointNo}, ${raw.lit(state)}, ${beforeNo})
    ORDER BY d.endpoint_no DESC, d.state DESC, d.no DESC LIMIT ${raw.lit(limit)}`;
}

const isIn = (state: Delivery["state"] | undefined) =>
  state === undefined ? raw`` : raw`AND d.state = ${raw.lit(state)}`;

/** Those of some endpoints whose deliveries a page may have: the ones with the newest, as many as it has rows. */
export function endpointsOfPage(endpointNos: readonly number[], page: Page) {
  const own = raw.join(endpointNos.map((no) => raw`(CAST(${no} AS bigint))`));
  return raw<PageEndpoint>`WITH own (no) AS (VALUES ${own})
    SELECT endpoint, newest FROM (
      SELECT own.no AS endpoint, (SELECT CASE WHEN d.endpoint_no = own.no ${isIn(page.state)} THEN d.no END FROM delivery d
        ${newestFirst(raw.ref("own.no"), page, 1)}) AS newest FROM own) AS firsts
    WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT ${raw.lit(page.limit)}`;
}

/** A page of these endpoints' deliveries. Of each, no more are read than can be on the page after the newest of others. */
export function rowsOfPage<Row>(endpoints: readonly PageEndpoint[], page: Page) {
  const parts = endpoints.map(({ endpoint }, rank) => {
    const first = raw`SELECT d.* FROM delivery d ${newestFirst(endpoint, page, page.limit - rank)}`;
    return raw`SELECT d.* FROM (${first}) AS d WHERE d.endpoint_no = ${endpoint} ${isIn(page.state)}`;
  });
  return raw<Row>`${raw.join(parts, raw` UNION ALL `)} ORDER BY no DESC LIMIT ${raw.lit(page.limit)}`;
}
