import { readPort } from "../domain/endpoints/ports.js";
import { readInstance } from "../domain/hosts/cpu.js";
import { hasControls, hasOddControls } from "../domain/plain-text.js";
import { invalid } from "../errors.js";
import { limits } from "../limits/index.js";

export interface TextRule {
  readonly is: "text";
  /** In characters, not UTF-16 units. */
  readonly charsMax: number;
  /** `none`: no control characters; `lines`: only tabs and line breaks; absent: not checked here. */
  readonly controls?: "none" | "lines";
}

export interface ChoiceRule {
  readonly is: "choice";
  readonly of: readonly string[];
}

type ItemRule = TextRule | ChoiceRule | { readonly is: "port" } | { readonly is: "instance" };

/** The values a resource's field may hold, over any interface. */
export type FieldRule =
  | TextRule
  | { readonly is: "integer"; readonly from: number; readonly to: number; readonly zero?: "the default" }
  | { readonly is: "flag" }
  | ChoiceRule
  | { readonly is: "list"; readonly itemsMax: number; readonly of: ItemRule }
  | { readonly is: "variables"; readonly valueCharsMax: number };

export type FieldRules = Readonly<Record<string, FieldRule>>;

export const text = (charsMax: number, controls?: "none" | "lines"): TextRule =>
  controls === undefined ? { is: "text", charsMax } : { is: "text", charsMax, controls };
export const list = (of: ItemRule): FieldRule => ({ is: "list", itemsMax: limits.listItemsMax, of });
export const integer = (from: number, to: number): FieldRule => ({ is: "integer", from, to });
export const flag: FieldRule = { is: "flag" };
export const choice = (of: readonly string[]): ChoiceRule => ({ is: "choice", of });
export const variables: FieldRule = { is: "variables", valueCharsMax: 131_072 };
/** The rule for names. */
export const nameRule = text(191, "none");

/**
 * Refuses a field that breaks its rule (INVALID_INPUT; the message says what is allowed). Absent fields, null and empty texts
 * pass, because each resource gives them its own meaning. A value equal to the stored one passes too: it may predate the rule.
 */
export function checkFields(
  rules: FieldRules,
  input: Readonly<Record<string, unknown>>,
  stored: Readonly<Record<string, unknown>> = {},
): void {
  for (const [field, rule] of Object.entries(rules)) {
    const value = Object.hasOwn(input, field) ? input[field] : undefined;
    if (value === undefined || value === null || value === "") continue;
    try {
      (checks[rule.is] as Check<FieldRule>)(field, rule, value);
    } catch (refusal) {
      if (!isSame(value, stored[field])) throw refusal;
    }
  }
}

function isSame(value: unknown, stored: unknown): boolean {
  if (value === stored) return true;
  if (typeof value !== "object" || typeof stored !== "object" || value === null || stored === null) return false;
  // what is refused may be very long
  return sizeOf(value) === sizeOf(stored) && JSON.stringify(value) === JSON.stringify(stored);
}

const sizeOf = (value: object): number => (Array.isArray(value) ? value.length : Object.keys(value).length);

type Check<Rule> = (field: string, rule: Rule, value: unknown) => void;

const checks: { readonly [Is in FieldRule["is"]]: Check<Extract<FieldRule, { is: Is }>> } = {
  text: checkText,
  integer: checkInteger,
  flag(field, _, value) {
    if (typeof value !== "boolean") throw invalid(`'${field}' must be true or false.`);
  },
  choice(field, { of }, value) {
    if (!of.includes(value as string)) throw invalid(`'${field}' must be one of ${of.join(", ")}.`);
  },
  list: checkList,
  variables: checkVariables,
};

function checkText(field: string, { charsMax, controls }: TextRule, value: unknown): void {
  if (typeof value !== "string") throw invalid(`'${field}' must be a string.`);
  if (isLonger(value, charsMax)) throw invalid(`'${field}' may have ${charsMax} characters at most.`);
  if (controls === "none" && hasControls(value)) throw invalid(holdsControls(field, false));
  if (controls === "lines" && hasOddControls(value)) throw invalid(holdsControls(field, true));
}

/** A character may take two UTF-16 units, so characters are counted only if the units exceed the limit. */
const isLonger = (value: string, charsMax: number): boolean =>
  value.length > charsMax && (value.length > 2 * charsMax || [...value].length > charsMax);

function checkInteger(field: string, rule: Extract<FieldRule, { is: "integer" }>, value: unknown): void {
  const { from, to, zero } = rule;
  if (zero !== undefined && value === 0) return;
  if (Number.isInteger(value) && (value as number) >= from && (value as number) <= to) return;
  const orZero = zero === undefined ? "" : `, or 0 for ${zero}`;
  throw invalid(`'${field}' must be a whole number from ${from} to ${to}${orZero}.`);
}

function checkList(field: string, rule: Extract<FieldRule, { is: "list" }>, value: unknown): void {
  if (!Array.isArray(value)) throw invalid(`'${field}' must be a list.`);
  if (value.length > rule.itemsMax) throw invalid(`'${field}' may have ${rule.itemsMax} entries at most.`);
  for (const each of value) checkItem(field, rule.of, each);
}

function checkItem(field: string, rule: ItemRule, value: unknown): void {
  if (rule.is === "text") {
    checkText(field, rule, value);
    return;
  }
  const isRight =
    rule.is === "choice"
      ? rule.of.includes(value as string)
      : typeof value === "string" && (rule.is === "port" ? readPort(value) : readInstance(value)) !== undefined;
  if (isRight) return;
  if (typeof value === "string" && hasControls(value)) throw invalid(holdsControls(field, false));
  const shown = `'${String(value).slice(0, 80)}' in ${field} is not`;
  if (rule.is === "choice") throw invalid(`${shown} one of ${rule.of.join(", ")}.`);
  if (rule.is === "port") throw invalid(`${shown} a port: write number/http or number/tcp, as in 8888/http.`);
  throw invalid(`${shown} an instance: write flavour-vCPUs-GB, as in cpu3g-2-8.`);
}

/** Names must be usable as environment variables. */
function checkVariables(field: string, rule: Extract<FieldRule, { is: "variables" }>, value: unknown): void {
  if (typeof value !== "object" || value === null) throw invalid(`'${field}' must be an object of strings.`);
  for (const [name, each] of Object.entries(value)) {
    const shown = name.slice(0, 80);
    if (!/^[A-Za-z_][A-Za-z0-9_.-]*$/.test(name)) throw invalid(`'${shown}' in ${field} is not a valid variable name.`);
    if (typeof each !== "string" || each.includes("\0"))
      throw invalid(`${field}.${shown} must be a string without NUL.`);
    if (isLonger(each, rule.valueCharsMax))
      throw invalid(`${field}.${shown} may have ${rule.valueCharsMax} characters at most.`);
  }
}

/** The message about a text with control characters. */
export function holdsControls(field: string, isLined: boolean): string {
  const which = isLined ? "a control character other than tabs and line breaks" : "a control character";
  return `'${field}' contains ${which}; remove it.`;
}

/** The time in an RFC 3339 text, in ms since 1970. Refuses any other text in the name of its field. */
export function timeIn(field: string, text: string): number {
  const at = Date.parse(text.toUpperCase().replace(/:60(?=[.Z+-])/, ":59")); // RFC 3339 has leap seconds
  if (Number.isNaN(at)) throw invalid(`'${field}' must be a time in RFC 3339 format, as in 2030-01-31T12:00:00Z.`);
  return at;
}
