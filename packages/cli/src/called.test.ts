import { expect, it } from "vitest";
import { asCalled, called, shellWord } from "./called.js";

it.each([
  [{}, "/home/me", "millrace"],
  [{ MILLRACE_CLONE: "/src/millrace" }, "/src/millrace", "npx millrace"],
  [{ MILLRACE_CLONE: "/src/millrace" }, "/home/me", "npx --prefix /src/millrace millrace"],
])("With %j, people in %s call it %s", (env, folder, name) => {
  expect(called(env, folder)).toBe(name);
});

it.each([
  ["millrace endpoint list", "npx millrace endpoint list"],
  ["No endpoints. millrace deploy FOLDER", "No endpoints. npx millrace deploy FOLDER"],
  ["It goes on: millrace status a b", "It goes on: npx millrace status a b"],
  [
    "MILLRACE_API_KEY=$(cat key.txt) millrace context add a",
    "MILLRACE_API_KEY=$(cat key.txt) npx millrace context add a",
  ],
  ["MILLRACE_API_KEY=KEY millrace context add a", "MILLRACE_API_KEY=KEY npx millrace context add a"],
  ["building millrace/shout:1 …", "building millrace/shout:1 …"],
])("%j has its command as people call it", (text, called) => {
  expect(asCalled(text, "npx millrace")).toBe(called);
});

it.each([
  ["shout", "shout"],
  ["/home/me/my app", "'/home/me/my app'"],
  ["it's", "'it'\\''s'"],
  ["$(id)", "'$(id)'"],
])("%j is one word of a shell: %s", (text, word) => {
  expect(shellWord(text)).toBe(word);
});
