import { limits } from "../../../limits/index.js";
import type { ShownLine } from "../../../operations/logs/read-logs.js";

/** Texts of lines joined to slices: a flood of control characters takes long to escape. */
export function* slicesOf(
  head: string,
  lines: readonly ShownLine[],
  textOf: (line: ShownLine) => string,
): Generator<string> {
  let text = head;
  for (const line of lines) {
    text += textOf(line);
    if (text.length < limits.listSliceBytes) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}
