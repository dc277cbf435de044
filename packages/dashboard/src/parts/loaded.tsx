import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Problem } from "./problem.js";
import { Rows } from "./rows.js";
import { whyOf } from "./why.js";

/** Something that is read from the server: a skeleton while it loads, a problem if it cannot be read, else itself. */
export function Loaded<T>({
  query,
  what,
  columns = 4,
  rows = 6,
  children,
}: {
  readonly query: Pick<UseQueryResult<T>, "data" | "error" | "dataUpdatedAt"> & { readonly refetch: () => unknown };
  readonly what: string;
  readonly columns?: number;
  readonly rows?: number;
  readonly children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined)
    return (
      <>
        {query.error && (
          <p role="status" className="note">
            Not refreshed since {new Date(query.dataUpdatedAt).toLocaleTimeString()}: {whyOf(query.error)}
          </p>
        )}
        {children(query.data)}
      </>
    );
  if (query.error) return <Problem what={what} error={query.error} again={() => void query.refetch()} />;
  return <Rows columns={columns} rows={rows} />;
}
