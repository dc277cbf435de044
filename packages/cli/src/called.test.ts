import { expect, it } from "vitest";
import { called } from "./called.js";

it.each([
  [{}, "/home/me", "millrace"],
  [{ MILLRACE_CLONE: "/src/millrace" }, "/src/millrace", "npx millrace"],
  [{ MILLRACE_CLONE: "/src/millrace" }, "/home/me", "npx --prefix /src/millrace millrace"],
])("With %j, people in %s call it %s", (env, folder, name) => {
  expect(called(env, folder)).toBe(name);
});
