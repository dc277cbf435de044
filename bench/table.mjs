// The rows as one table, with the conditions of the measurement.
import { execFileSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from "node:os";
import { titles, verdict } from "./entries.mjs";
import { median, range } from "./rounds.mjs";

export const loadNow = () => loadavg();

const durability = {
  sqlite: "Millrace on SQLite: journal_mode WAL, synchronous FULL; answered after the commit",
  postgres: "Millrace on PostgreSQL: answered after the commit",
};

/** The machine, and how durable SQLite is on it. */
export function conditions(loadBefore, databases) {
  const { model = "unknown processor" } = cpus()[0] ?? {};
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return [
    `Machine: ${availableParallelism()} × ${model.trim()}, ${memoryGib} GiB, ${type()} ${release()}`,
    `Load average when it began ${loads(loadBefore)}, when it ended ${loads(loadNow())}`,
    `Node.js ${process.version}; data on ${fileSystem()}`,
    ...databases.map((database) => durability[database]),
    "Millrace: rate limits off, log level error; everything else as it comes",
  ];
}

const loads = (averages) => averages.map((load) => load.toFixed(1)).join(", ");

const heads = [
  "row",
  "on",
  "what",
  "Millrace: median (least to greatest)",
  "compared with",
  "result",
  "must",
  "aim",
  "",
];
const words = { met: "met", must: "must met, aim missed", missed: "MISSED" };

/** A Markdown table with a line for each entry, and the notes below it. */
export function table(measured) {
  const entries = measured.flatMap(({ name, entries }) => entries.map((entry) => ({ name, ...entry })));
  const notes = entries
    .filter(({ note }) => note !== undefined)
    .map(({ name, database, note }) => `- ${name}${database === undefined ? "" : `, ${titles[database]}`}: ${note}`);
  const lines = [heads, ...entries.map(cells)];
  const widths = heads.map((_, at) => Math.max(3, ...lines.map((line) => line[at].length)));
  const print = (line) => `| ${line.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`;
  const rule = print(widths.map((width) => "-".repeat(width)));
  return [print(heads), rule, ...lines.slice(1).map(print), ...(notes.length > 0 ? ["", ...notes] : [])].join("\n");
}

function cells(entry) {
  const { name, database, what } = entry;
  const on = titles[database] ?? "";
  if (entry.why !== undefined) return [name, on, what, "not measured", entry.why, "", "", "", ""];
  const theirs =
    entry.theirs === undefined ? (entry.against ?? "") : `${entry.against}: ${shown(entry.theirs, entry.unit)}`;
  const result = entry.figure === undefined ? "" : withUnit(entry.figure.value, entry.figure.unit);
  const bound = (value) =>
    value === undefined ? "" : `${entry.isLeast ? "≥" : "≤"} ${value}${unitOf(entry.figure.unit)}`;
  return [
    name,
    on,
    what,
    shown(entry.ours, entry.unit),
    theirs,
    result,
    bound(entry.bounds?.must),
    bound(entry.bounds?.aim),
    words[verdict(entry)] ?? "",
  ];
}

const unitOf = (unit) => (unit === "×" ? "" : ` ${unit}`);
const withUnit = (value, unit) => `${value.toFixed(Math.abs(value) < 10 ? 2 : 0)}${unitOf(unit)}`;
const shown = (values, unit) => `${number(median(values))} ${unit} (${range(values).map(number).join(" to ")})`;

/** Three significant digits, or all digits of a larger number. */
const number = (value) => (Math.abs(value) >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3))));

function fileSystem() {
  try {
    return execFileSync("df", ["--output=fstype", tmpdir()], { encoding: "utf8" }).split("\n")[1].trim();
  } catch {
    return "an unknown file system";
  }
}
