import type { Gpu } from "../../domain/hosts/gpu.js";

/** The fields that every driver knows; only newer drivers know `migField`. */
export const plainFields = ["index", "uuid", "name", "memory.total", "driver_version", "pstate"];
export const migField = "mig.mode.current";

/** The parsed CSV output of `nvidia-smi`. */
export interface GpuList {
  readonly gpus: readonly Gpu[];
  /** One sentence for each GPU that does not work, and for oddities of others. */
  readonly problems: readonly string[];
  /** Whether a GPU was reported as unreachable: older drivers stop there, and do not report the others. */
  readonly hasUnreachable: boolean;
  /** The first line that was not understood. */
  readonly unknown: string | undefined;
}

const unreachable = /^Unable to determine the device handle for (GPU ?.*?): ([^:]+)$/i;
const row = /^(\d+), (GPU-[\w-]+), (.+), (\d+|\[[^\]]+\]), ([^,]+), ([^,]+)(?:, ([^,]+))?$/;
const rowOfNothing = /^\[[^\]]+\](, \[[^\]]+\])*$/;
const isBroken = (value: string) => /^\[.*(requires reset|is lost|fallen off).*\]$/i.test(value);
const isMissing = (value: string) => value.startsWith("[");

/** Cleans up a line of another program's output for logs and replies. */
export const shown = (line: string): string =>
  line
    .replace(/[^\x20-\x7e]+/g, " ")
    .trim()
    .slice(0, 200);

/** Parses the output of a query for the fields above, without header and units. */
export function readGpuList(text: string): GpuList {
  const gpus: Gpu[] = [];
  const problems: string[] = [];
  let hasUnreachable = false;
  let unknown: string | undefined;
  const lines = text.split(/\r?\n/).map((line) => line.trim());
  for (const line of lines) {
    const lost = unreachable.exec(line);
    if (lost) {
      hasUnreachable = true;
      problems.push(`${shown(lost[1] as string)} cannot be reached (${shown(lost[2] as string)}).`);
      continue;
    }
    if (line.startsWith("WARNING:")) problems.push(`nvidia-smi warns: ${shown(line.slice(8))}.`);
    // the row of a GPU that the line before reported as unreachable
    else if (rowOfNothing.test(line)) hasUnreachable = true;
    else if (line !== "" && !readRow(line, gpus, problems)) unknown ??= shown(line);
  }
  return { gpus: gpus.sort((a, b) => a.index - b.index), problems, hasUnreachable, unknown };
}

/** Parses a row into one of the lists, or both; false if it is no row. */
function readRow(line: string, gpus: Gpu[], problems: string[]): boolean {
  const [, index, id, rawName, memory, driver, pstate, mig] = row.exec(line) ?? [];
  if (index === undefined || id === undefined || !rawName || !memory || !driver || !pstate) return false;
  if (gpus.some((gpu) => gpu.id === id)) return true;
  const values = [rawName, memory, driver, pstate];
  const broken = values.find(isBroken) ?? [rawName, memory, driver].find((value) => value === "[Unknown Error]");
  const name = shown(rawName.replace(/\s+/g, " "));
  if (broken !== undefined || isMissing(rawName)) {
    const what = (broken ?? rawName).slice(1, -1);
    problems.push(`GPU ${index} (${id}) does not work (${shown(what)}); nvidia-smi -r or a restart may help.`);
    return true;
  }
  if (mig === "Enabled") {
    problems.push(`GPU ${index} (${id}) is in MIG mode: it is given out as a whole, which needs MIG off.`);
  }
  // a GPU that shares the machine's memory reports none
  const memoryMib = isMissing(memory) ? 0 : Number(memory);
  gpus.push({ id, index: Number(index), name, memoryMib, driver: isMissing(driver) ? "" : shown(driver) });
  return true;
}
