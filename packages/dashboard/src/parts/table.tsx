import { useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useMemo, useRef } from "react";

/** A column of a table: what a cell shows, and what it sorts by, if it does. */
export interface Column<T> {
  readonly title: string;
  readonly of: (row: T) => ReactNode;
  readonly by?: (row: T) => string | number | undefined;
  readonly kind?: "number" | "why" | "id";
}

const rowHeight = 36;
/** Up to so many rows are all in the page; of more only those that can be seen are. */
const wholeMax = 60;

/** A parameter of the URL with a table's order: a column's title, after a minus if the order is descending. */
type SortIn = "sort" | "receiverSort" | "podSort" | "volumeSort" | "sharedSort";

/** A table that stays fluid with 100,000 rows. The first column names the row. `onEnd` is called near its end. */
export function Table<T>({
  label,
  rows,
  columns,
  keyOf,
  sortIn = "sort",
  onEnd,
}: {
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  readonly keyOf: (row: T) => string;
  /** Tables of one page are sorted each in its own. */
  readonly sortIn?: SortIn;
  readonly onEnd?: (() => void) | undefined;
}) {
  const room = useRef<HTMLDivElement>(null);
  const [sort, setSort] = useSort(sortIn);
  const sorted = useMemo(() => sortedBy(rows, columns, sort), [rows, columns, sort]);
  const isVirtual = sorted.length > wholeMax;
  const virtual = useVirtualizer({
    count: isVirtual ? sorted.length : 0,
    getScrollElement: () => room.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const seen = virtual.getVirtualItems();
  const [first, last] = [seen[0], seen.at(-1)];
  const shown = isVirtual ? seen.map(({ index }) => sorted[index] as T) : sorted;
  const before = first?.start ?? 0;
  const after = isVirtual ? virtual.getTotalSize() - (last?.end ?? 0) : 0;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls
    <div
      className={isVirtual ? "table-room virtual" : "table-room"}
      ref={room}
      role="group"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
        if (scrollTop + clientHeight > scrollHeight - 10 * rowHeight) onEnd?.();
      }}
    >
      <table aria-rowcount={sorted.length + 1}>
        <thead>
          <tr>
            {columns.map(({ title, by, kind }) => (
              <th key={title} scope="col" className={kind} aria-sort={by && sortOf(title, sort)}>
                {by ? (
                  <button
                    type="button"
                    className="sorter"
                    onClick={() => setSort({ title, isDown: sort?.title === title && !sort.isDown })}
                  >
                    {title}
                    {sort?.title === title && <span aria-hidden="true">{sort.isDown ? " ↓" : " ↑"}</span>}
                  </button>
                ) : (
                  title
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <Spacer height={before} columns={columns.length} />}
          {shown.map((row) => (
            <Row key={keyOf(row)} row={row} columns={columns} />
          ))}
          {after > 0 && <Spacer height={after} columns={columns.length} />}
        </tbody>
      </table>
    </div>
  );
}

interface Sort {
  readonly title: string;
  readonly isDown: boolean;
}

function useSort(name: SortIn) {
  const { [name]: order } = useSearch({ strict: false });
  const navigate = useNavigate();
  const sort = useMemo<Sort | undefined>(() => {
    if (order === undefined) return undefined;
    const isDown = order.startsWith("-");
    return { title: isDown ? order.slice(1) : order, isDown };
  }, [order]);
  const setSort = ({ title, isDown }: Sort) =>
    void navigate({
      to: ".",
      search: (others) => ({ ...others, [name]: isDown ? `-${title}` : title }),
      replace: true,
    });
  return [sort, setSort] as const;
}

interface RowProps<T> {
  readonly row: T;
  readonly columns: readonly Column<T>[];
}

/** Drawn again only if its own content changes: while a list scrolls, a few rows come and go. */
const Row = memo(function Row<T>({ row, columns }: RowProps<T>) {
  return (
    <tr>
      {columns.map(({ title, of, kind }, n) =>
        n === 0 ? (
          <th key={title} scope="row" className={kind}>
            {kind === "id" ? <Tail>{of(row)}</Tail> : of(row)}
          </th>
        ) : (
          <td key={title} className={kind}>
            {kind === "id" ? <Tail>{of(row)}</Tail> : of(row)}
          </td>
        ),
      )}
    </tr>
  );
}) as <T>(props: RowProps<T>) => ReactNode;

/** An id, of which a narrow window shows the end: the beginning of most is the same. */
const Tail = ({ children }: { readonly children: ReactNode }) => (
  <span className="tail">
    <bdi>{children}</bdi>
  </span>
);

const Spacer = ({ height, columns }: { readonly height: number; readonly columns: number }) => (
  <tr className="spacer">
    <td colSpan={columns} style={{ height }} />
  </tr>
);

function sortOf(title: string, sort: Sort | undefined) {
  if (sort?.title !== title) return undefined;
  return sort.isDown ? "descending" : "ascending";
}

function sortedBy<T>(rows: readonly T[], columns: readonly Column<T>[], sort: Sort | undefined): readonly T[] {
  const by = columns.find(({ title }) => title === sort?.title)?.by;
  if (!by || !sort) return rows;
  const sign = sort.isDown ? -1 : 1;
  return rows.toSorted((a, b) => sign * compare(by(a), by(b)));
}

function compare(a: string | number | undefined, b: string | number | undefined): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
}
