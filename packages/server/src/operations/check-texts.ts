import { hasControls, hasOddControls } from "../domain/plain-text.js";
import { invalid } from "../errors.js";

/** Refuses control characters in fields that are texts or lists of texts; those of `linedFields` may have lines. */
export function checkTexts(
  input: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  linedFields: readonly string[] = [],
): void {
  for (const field of [...fields, ...linedFields]) {
    const isLined = linedFields.includes(field);
    const texts = [input[field]].flat().filter((each) => typeof each === "string");
    if (texts.some(isLined ? hasOddControls : hasControls)) {
      throw invalid(holdsControls(field, isLined));
    }
  }
}

/** The words of that refusal. */
export function holdsControls(field: string, isLined: boolean): string {
  const which = isLined ? "a control character other than tabs and line ends" : "a control character";
  return `'${field}' holds ${which}: send it without.`;
}
