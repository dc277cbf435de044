import { expect, it } from "vitest";
import { type Column, tableText } from "./table.js";

interface Row {
  readonly id: string;
  readonly state: string;
  readonly count?: number;
  readonly why: string;
}
const columns: readonly Column<Row>[] = [
  { title: "job", of: ({ id }) => id },
  { title: "state", of: ({ state }) => state },
  { title: "tries", of: ({ count }) => count },
  { title: "why", of: ({ why }) => why },
];
const rows: readonly Row[] = [
  { id: "0123456789abcdef0123", state: "FAILED", count: 12, why: "it went wrong for a long and complicated reason" },
  { id: "fedcba98765432100123", state: "IN_QUEUE", why: "" },
];
const drawn = (width?: number, of = rows) => tableText(of, columns, (title) => title, width).split("\n");

it("a table that fits has a line for each row, and numbers to the right", () => {
  for (const width of [undefined, 200])
    expect(drawn(width)).toEqual([
      "job                   state     tries  why",
      "0123456789abcdef0123  FAILED       12  it went wrong for a long and complicated reason",
      "fedcba98765432100123  IN_QUEUE",
    ]);
});

it("the last column is cut where that is enough", () => {
  expect(drawn(60)).toEqual([
    "job                   state     tries  why",
    "0123456789abcdef0123  FAILED       12  it went wrong for a …",
    "fedcba98765432100123  IN_QUEUE",
  ]);
});

it("a row takes several lines where it is not, and its id stays whole", () => {
  expect(drawn(40)).toEqual([
    "job                   state     tries",
    "  why",
    "0123456789abcdef0123  FAILED       12",
    "  it went wrong for a long and complica…",
    "fedcba98765432100123  IN_QUEUE",
  ]);
  expect(drawn(24)).toEqual([
    "job",
    "  state     tries",
    "  why",
    "0123456789abcdef0123",
    "  FAILED       12",
    "  it went wrong for a l…",
    "fedcba98765432100123",
    "  IN_QUEUE",
  ]);
});

it.each([10, 24, 40, 60, 80])("no line is wider than %i columns, unless an id is", (width) => {
  for (const line of drawn(width)) expect(line.length).toBeLessThanOrEqual(Math.max(width, 20));
});

it("of a text with several lines the first is shown", () => {
  const row = { id: "a", state: "b", why: "first\nsecond" };
  expect(drawn(80, [row]).at(-1)).toMatch(/ first …$/);
});
