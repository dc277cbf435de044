// The rows as one table, with what they were measured on.
import { execFileSync } from "node:child_process";
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from "node:os";
import { median, range } from "./statistics.mjs";

/** The machine and the settings that the figures depend on. */
export function conditions(loadBefore) {
  const { model = "unknown processor" } = cpus()[0] ?? {};
  const memoryGib = Math.round(totalmem() / 2 ** 30);
  return [
    `Machine: ${availableParallelism()} × ${model.trim()}, ${memoryGib} GiB, ${type()} ${release()}`,
    `Load average when it began: ${loadBefore.map((load) => load.toFixed(1)).join(", ")}`,
    `Node.js ${process.version}`,
    `Durability: SQLite, journal_mode WAL, synchronous FULL, on ${fileSystem()}; answered after the commit`,
    "Rate limits off; everything else as it comes",
  ];
}

export const loadNow = () => loadavg();

/** A Markdown table, and a line for each row that misses its bound. */
export function table(rows) {
  const lines = rows.map((row) => [row.name, shown(row.ours, row.unit), compared(row), ratio(row)]);
  const all = [["what", "Millrace: median (least to greatest)", "compared with", "ratio of medians"], ...lines];
  const widths = all[0].map((_, at) => Math.max(...all.map((line) => line[at].length)));
  const print = (line) => `| ${line.map((cell, at) => cell.padEnd(widths[at])).join(" | ")} |`;
  return [print(all[0]), print(widths.map((width) => "-".repeat(width))), ...all.slice(1).map(print)].join("\n");
}

export const isMissed = ({ ratio, ratioMax }) => ratioMax !== undefined && ratio > ratioMax;

const shown = (values, unit) => `${whole(median(values))}${unit} (${range(values).map(whole).join(" to ")})`;
const compared = ({ theirs, unit, against }) => (theirs === undefined ? "" : `${shown(theirs, unit)}, ${against}`);
const whole = (value) => String(Math.round(value));

function ratio(row) {
  if (row.ratio === undefined) return "";
  const bound = row.ratioMax === undefined ? "" : ` (at most ${row.ratioMax}${isMissed(row) ? ": MISSED" : ""})`;
  return `${row.ratio.toFixed(2)}${bound}`;
}

function fileSystem() {
  try {
    return execFileSync("df", ["--output=fstype", tmpdir()], { encoding: "utf8" }).split("\n")[1].trim();
  } catch {
    return "an unknown file system";
  }
}
