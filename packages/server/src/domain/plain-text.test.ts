import { expect, it } from "vitest";
import { coloured, harmless } from "./plain-text.js";

it.each([
  ["tab\tand\nline", "tab\tand\nline"],
  ["\u001b[2J\u0007\u009b", "\\x1b[2J\\x07\\x9b"],
  ["safe\u202Egpj.exe", "safe\\u202egpj.exe"],
  ["\u2066isolated\u2069", "\\u2066isolated\\u2069"],
  ["grüße, שלום, \u200eLTR", "grüße, שלום, \u200eLTR"],
])("%j is shown as %j", (text, shown) => {
  expect(harmless(text)).toBe(shown);
});

it("Colours stay where there are colours, end with their text, and leave no trace elsewhere", () => {
  const text = "\u001b[1;31mred \u001b[2Jand";
  expect(coloured(text, true)).toBe("\u001b[1;31mred \\x1b[2Jand\u001b[0m");
  expect(coloured(text, false)).toBe("red \\x1b[2Jand");
  expect(coloured("plain", true)).toBe("plain");
});
