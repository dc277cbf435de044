import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { get } from "../session.js";

/** A list that the server returns page by page. */
interface Asked<Page, Row> {
  readonly key: readonly string[];
  /** Its first page, with a query string. */
  readonly path: string;
  readonly rowsOf: (page: Page) => readonly Row[];
  /** The parameter that asks for the page after this one, such as `cursor=…`; undefined if there is none. */
  readonly next: (page: Page) => string | undefined;
}

/** Reads a list's first page, and the next one whenever it is asked for. */
export function usePages<Page, Row>({ key, path, rowsOf, next }: Asked<Page, Row>) {
  const queries = useQueryClient();
  const queryKey = [...key, path];
  const { data, error, dataUpdatedAt, refetch, hasNextPage, isFetching, fetchNextPage } = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam }) => get<Page>(path + pageParam),
    initialPageParam: "",
    getNextPageParam: (page) => {
      const more = next(page);
      return more && `&${more}`;
    },
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: it depends on the page alone
  const rows = useMemo(() => data?.pages.flatMap(rowsOf), [data]);
  return {
    data: rows,
    error,
    dataUpdatedAt,
    refetch,
    pages: data?.pages.length ?? 0,
    /** Undefined if there is no further page, or while one is read. */
    loadMore: hasNextPage && !isFetching ? () => void fetchNextPage() : undefined,
    hasMore: hasNextPage,
    /** Forgets all pages but the first, and reads it again. */
    restart: () => void queries.resetQueries({ queryKey, exact: true }),
  };
}

/** A list without an envelope: a full page may have another one after it. */
export const arrayPages = <Row,>(limit: number, next: (last: Row) => string) => ({
  rowsOf: (page: readonly Row[]) => page,
  next: (page: readonly Row[]) => {
    const last = page.at(-1);
    return page.length < limit || last === undefined ? undefined : next(last);
  },
});

/** How much of a list is shown, and the button for its next page. `isLive`: its first page is read again as it changes. */
export function More({
  list: { data = [], pages, hasMore, loadMore, restart },
  verb = "Older ones",
  isLive = false,
}: {
  readonly list: Omit<ReturnType<typeof usePages<unknown, unknown>>, "refetch" | "error" | "dataUpdatedAt">;
  readonly verb?: string;
  readonly isLive?: boolean;
}) {
  if (!hasMore && pages < 2) return null;
  return (
    <p className="note buttons">
      {data.length} shown
      {hasMore && (
        <button type="button" className="small" disabled={!loadMore} onClick={loadMore}>
          {verb}
        </button>
      )}
      {isLive && pages > 1 && (
        <>
          <button type="button" className="small" onClick={restart}>
            Back to the newest
          </button>
          The list is not refreshed while older ones are shown.
        </>
      )}
    </p>
  );
}

/** Says that a list which has no further page may be cut. */
export const Cut = ({ rows, most, what }: { readonly rows: number; readonly most: number; readonly what: string }) =>
  rows < most ? null : (
    <p className="note">
      The newest {most} {what}.
    </p>
  );
