import { describe, expect, it } from "vitest";
import { readPythonLiteral } from "./python-literal.js";

describe("The text of a Python value is read:", () => {
  it.each([
    ["{'a': 1, 'b': -2.5, 'c': 1e3}", { a: 1, b: -2.5, c: 1000 }],
    ["{'none': None, 'yes': True, 'no': False}", { none: null, yes: true, no: false }],
    [`{'plain': "it's", "double": 'say "so"'}`, { plain: "it's", double: 'say "so"' }],
    [String.raw`'\\ \' \" \n\t\r \x41 \u00e9 \U0001f600 \101 \0.'`, "\\ ' \" \n\t\r A é 😀 A \0."],
    ["{'a': [1, {'b': ()}, (2,), (3)], }", { a: [1, { b: [] }, [2], 3] }],
    ["{}", {}],
    ["{1: 'a', None: 'b'}", { 1: "a", null: "b" }],
    ["  [ 'x' , 'y' ]  ", ["x", "y"]],
    ["'ünï 漢'", "ünï 漢"],
    [
      `{'object': 'error', 'message': "max_tokens can't be 0", 'type': 'BadRequestError', 'param': None, 'code': 400}`,
      { object: "error", message: "max_tokens can't be 0", type: "BadRequestError", param: null, code: 400 },
    ],
  ])("%s", (text, value) => {
    expect(readPythonLiteral(text)).toEqual({ value });
  });

  it("a name that is special in JavaScript is treated like any other", () => {
    const value = readPythonLiteral("{'__proto__': {'polluted': True}, 'constructor': 1}")?.value as object;
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

describe("Any other text is not read:", () => {
  it.each([
    ["out of memory"],
    [""],
    ["{'a': 1"],
    ["{'a' 1}"],
    ["{'a': 1 'b': 2}"],
    ["{'a': 1} and more"],
    ["{'a': <HTTPStatus.BAD_REQUEST: 400>}"],
    ["{'a': datetime.date(2025, 1, 1)}"],
    ["{'a': b'bytes'}"],
    ["{'a': nan}"],
    ["{'a': 1.2.3}"],
    ["{'a': 12abc}"],
    ["{'a': Nonesuch}"],
    ["{[1]: 2}"],
    ["'no end"],
    ["'a\nb'"],
    [String.raw`'\q'`],
    [String.raw`'\x4'`],
    [String.raw`'\U00110000'`],
    [`${"[".repeat(51)}${"]".repeat(51)}`],
  ])("%s", (text) => {
    expect(readPythonLiteral(text)).toBeUndefined();
  });

  it("however deeply it is nested", () => {
    expect(readPythonLiteral("[".repeat(200_000))).toBeUndefined();
    expect(readPythonLiteral(`${"[".repeat(50)}${"]".repeat(50)}`)).toBeDefined();
  });
});
