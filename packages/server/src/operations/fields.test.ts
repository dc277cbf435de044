import {
  EndpointCreate,
  EndpointUpdate,
  RegistryAuthCreate,
  TemplateCreate,
  TemplateUpdate,
  VolumeCreate,
  VolumeUpdate,
  visible,
  visibleLines,
} from "@millrace/api";
import { describe, expect, it } from "vitest";
import { Refusal } from "../errors.js";
import { endpointFields } from "./endpoints/endpoint-settings.js";
import {
  checkFields,
  choice,
  type FieldRule,
  type FieldRules,
  flag,
  integer,
  list,
  text,
  variables,
} from "./fields.js";
import { registryAuthFields } from "./templates/save-registry-auth.js";
import { templateFields } from "./templates/save-template.js";
import { volumeFields } from "./volumes/save-volume.js";

/** The refusal's message; undefined if the value is accepted. */
function said(rule: FieldRule, value: unknown): string | undefined {
  try {
    checkFields({ field: rule }, { field: value });
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    expect((error as Refusal).code).toBe("INVALID_INPUT");
    return (error as Refusal).message;
  }
}

describe("A field", () => {
  it.each<[string, FieldRule, unknown, RegExp]>([
    ["a text that is too long", text(3), "four", /'field' may have 3 characters at most/],
    ["a number as text field", text(3), 5, /'field' must be a string/],
    ["a text with control characters", text(3, "none"), "a\n", /'field' contains a control character; /],
    ["a text of lines with other control characters", text(9, "lines"), "a\nb\x1b", /other than tabs and line breaks/],
    ["a negative size", integer(0, 9), -1, /'field' must be a whole number from 0 to 9\./],
    ["a number that is too large", integer(0, 9), 10, /from 0 to 9/],
    ["a fraction", integer(0, 9), 0.5, /whole number/],
    ["a number as text", integer(0, 9), "5", /whole number/],
    ["a time that is too short", { is: "integer", from: 5, to: 9, zero: "the default" }, 4, /9, or 0 for the default/],
    ["a flag that is a string", flag, "true", /true or false/],
    ["an unknown word", choice(["A", "B"]), "C", /'field' must be one of A, B\./],
    ["a list that is too long", list(text(9)), Array(101).fill("a"), /'field' may have 100 entries at most/],
    ["a list with a text that is too long", list(text(3)), ["a", "four"], /'field' may have 3 characters/],
    ["a list that is a string", list(text(3)), "a", /must be a list/],
    ["an invalid port", list({ is: "port" }), ["80/http", "80"], /'80' in field is not a port: write number\/http/],
    ["an unknown word in a list", list(choice(["A", "B"])), ["A", "C"], /'C' in field is not one of A, B\./],
    ["an unreadable instance", list({ is: "instance" }), ["cpu3g-0-8"], /is not an instance: .* cpu3g-2-8/],
    ["a control character in a list of words", list(choice(["A"])), ["A\0"], /contains a control character/],
    ["an invalid variable name", variables, { "1A": "" }, /'1A' in field is not a valid variable name/],
    ["a variable that is a number", variables, { A: 1 }, /field\.A must be a string without NUL/],
    ["a variable with NUL", variables, { A: "\0" }, /field\.A must be/],
    ["a variable that is too long", variables, { A: "x".repeat(131_073) }, /field\.A may have 131072 characters/],
    ["variables that are a string", variables, "A=1", /'field' must be an object of strings/],
  ])("refuses %s", (_, rule, value, words) => {
    expect(said(rule, value)).toMatch(words);
  });

  it.each<[string, FieldRule, unknown]>([
    ["a value that is absent, null or empty", integer(1, 2), undefined],
    ["null", list(text(1)), null],
    ["the empty text", choice(["A"]), ""],
    ["characters of two units each", text(3), "😀😀😀"],
    ["line ends in a text of lines", text(9, "lines"), "a\n\tb\r\n"],
    ["zero for the default", { is: "integer", from: 5, to: 9, zero: "the default" }, 0],
    ["both ends of a range", integer(1, 1), 1],
    ["ports", list({ is: "port" }), ["1/tcp", "65535/http"]],
    ["instances", list({ is: "instance" }), ["cpu3g-2-8", "cpu5c-16-32"]],
    [
      "variables, even with the names of an object's own properties",
      variables,
      { A: "", constructor: "x", "b.c-d": "\n" },
    ],
  ])("takes %s", (_, rule, value) => {
    expect(said(rule, value)).toBeUndefined();
  });
});

// ---- The REST API's document states the same rules

interface Schema {
  readonly type?: string;
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
  readonly const?: unknown;
  readonly items?: Schema;
  readonly patternProperties?: Record<string, Schema>;
}

/** The rule that a schema expresses; null if it expresses none. */
function ruleOf(schema: Schema): unknown {
  const kinds = (schema.anyOf ?? [schema]).filter(({ type }) => type !== "null");
  const inner = kinds.flatMap((each) => (each.anyOf ? each.anyOf : [each]));
  const words = inner.map((each) => each.const).filter((each) => typeof each === "string" && each !== "");
  if (words.length > 0) return choice(words as string[]);
  const whole = inner.find(({ type, minimum }) => type === "integer" && minimum !== undefined);
  const zero = inner.some((each) => each.const === 0) ? { zero: "the default" } : {};
  if (whole) return { ...integer(whole.minimum!, whole.maximum!), ...zero };
  const [only] = inner;
  if (only?.type === "boolean") return flag;
  if (only?.type === "string") return textOf(only);
  if (only?.type === "array")
    return {
      is: "list",
      itemsMax: only.maxItems,
      of: itemOf(only.items!),
    };
  const values = Object.values(only?.patternProperties ?? {})[0];
  return values ? { is: "variables", valueCharsMax: values.maxLength } : null;
}

function itemOf(items: Schema): unknown {
  if (items.anyOf) return choice(items.anyOf.map((each) => each.const as string));
  if (/http\|tcp/.test(items.pattern ?? "")) return { is: "port" };
  return items.pattern?.startsWith("^cpu") ? { is: "instance" } : textOf(items);
}

const textOf = ({ maxLength, pattern }: Schema) =>
  text(maxLength!, pattern === visible ? "none" : pattern === visibleLines ? "lines" : undefined);

describe("The rules of fields", () => {
  it.each<[string, FieldRules, readonly object[]]>([
    ["endpoint", endpointFields, [EndpointCreate, EndpointUpdate]],
    ["template", templateFields, [TemplateCreate, TemplateUpdate]],
    ["network volume", volumeFields, [VolumeCreate, VolumeUpdate]],
  ])("are those of the REST API's document: %s", (_, rules, schemas) => {
    for (const schema of schemas) {
      const { properties } = schema as { properties: Record<string, Schema> };
      expect(Object.keys(rules)).toEqual(expect.arrayContaining(Object.keys(properties)));
      for (const [name, each] of Object.entries(properties)) expect([name, ruleOf(each)]).toEqual([name, rules[name]]);
    }
  });

  it("are those of the REST API's document: credentials", () => {
    const { properties } = RegistryAuthCreate as unknown as { properties: Record<string, Schema> };
    for (const [name, rule] of Object.entries(registryAuthFields))
      expect([name, ruleOf(properties[name]!)]).toEqual([name, rule]);
  });
});
