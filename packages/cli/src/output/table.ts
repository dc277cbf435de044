import Table from "cli-table3";
import { harmless } from "./plain.js";

export interface Column<Row> {
  readonly title: string;
  readonly of: (row: Row) => string | number | undefined;
}

/** Between columns. */
const gap = 2;
/** What is left of a text that is cut. */
const cutLeast = 12;
/** Before the lines of a row after its first. */
const indent = 2;

/**
 * Rows as aligned columns, numbers to the right. Within a `width` (absent: any), the last column, which says why or what,
 * is cut; if that is not enough, each row takes several lines, so that ids stay whole.
 */
export function tableText<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  head: (title: string) => string,
  width = Number.POSITIVE_INFINITY,
): string {
  const cells = rows.map((row) => columns.map(({ of }) => of(row)));
  const texts = cells.map((row) => row.map((cell) => firstLine(harmless(`${cell ?? ""}`))));
  const widths = columns.map(({ title }, n) => Math.max(title.length, ...texts.map((row) => row[n]?.length ?? 0)));
  const isNumber = columns.map((_, n) => cells.every((row) => row[n] === undefined || typeof row[n] === "number"));
  const groups = grouped(widths, width);
  const drawn = groups.map((group, line) => {
    const before = line === 0 ? 0 : indent;
    const last = group.at(-1) as number;
    const others = group.slice(0, -1).reduce((sum, n) => sum + (widths[n] as number) + gap, before);
    const table = new Table({
      colWidths:
        others + (widths[last] as number) <= width ? [] : [...group.slice(1).map(() => null), width - others + gap],
      head: group.map((n) => head(columns[n]?.title ?? "")),
      colAligns: group.map((n) => (isNumber[n] ? "right" : "left")),
      chars: noLines,
      style: { head: [], border: [], "padding-left": 0, "padding-right": gap },
    });
    table.push(...texts.map((row) => group.map((n) => row[n] as string)));
    return table
      .toString()
      .split("\n")
      .map((text) => " ".repeat(before) + text);
  });
  const lines = [-1, ...rows.keys()].flatMap((row) => drawn.map((group) => group[row + 1] as string));
  return lines
    .map((line) => line.trimEnd())
    .filter((line, n) => line !== "" || n % groups.length === 0)
    .join("\n");
}

/** Which columns stand beside each other: all of them if they fit once the last one is cut. */
function grouped(widths: readonly number[], width: number): number[][] {
  const lines: number[][] = [[]];
  let used = 0;
  widths.forEach((natural, n) => {
    const needed = n === widths.length - 1 ? Math.min(natural, cutLeast) : natural;
    if (used + needed > width && lines.at(-1)?.length !== 0) {
      lines.push([]);
      used = indent;
    }
    lines.at(-1)?.push(n);
    used += needed + gap;
  });
  return lines;
}

/** What a cell shows of a text. */
const firstLine = (text: string): string => text.replace(/\n.*/s, " …");

const noLines = Object.fromEntries(
  ["top", "bottom", "left", "right", "mid"]
    .flatMap((side) => [side, `${side}-mid`, `${side}-left`, `${side}-right`])
    .concat("middle")
    .map((name) => [name, ""]),
);
