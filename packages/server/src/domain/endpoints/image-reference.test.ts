import { describe, expect, it } from "vitest";
import { isImageReference, noReference } from "./image-reference.js";

const hex = "0123456789abcdef".repeat(4);

describe("A name of a container image", () => {
  it.each([
    "python",
    "python:3.12",
    "team/echo",
    "team/echo:v1.2_a-b",
    "localhost/echo",
    "localhost:5000/team/echo:1",
    "Registry.Example:443/a/b/c__d/e-f.g_h---i:1",
    `registry.example/image:1@sha256:${hex}`,
    `python@sha256:${hex}`,
    "[::1]:5000/echo",
    `${"a".repeat(255)}:${"b".repeat(128)}`,
  ])("is '%s'", (image) => {
    expect(isImageReference(image)).toBe(true);
  });

  it.each([
    "",
    "python:3.12/get?",
    "python/get?names=x",
    "a/../../containers/x",
    "../containers/x",
    "..",
    "a/./b",
    "a//b",
    "/a",
    "a/",
    "x#f",
    "a b",
    "a\r\nX: y",
    "python\n",
    "a\u0000",
    "a%2fb",
    "a\\b",
    "--privileged",
    "-a",
    "Python",
    "team/Echo",
    "Team/echo",
    "python:",
    "python:a/b:c",
    "python@sha256:short",
    `python@sha256:${hex}?`,
    "a.b:port/x",
    "a__-b/",
    "é",
    "a".repeat(256),
    `python:${"b".repeat(129)}`,
    "a".repeat(100_000),
  ])("is not %j", (image) => {
    expect(isImageReference(image)).toBe(false);
  });

  it("that is invalid is named in one line", () => {
    expect(noReference(`a\r\n${"x".repeat(500)}`)).toMatch(/^"a\\r\\nx{77}" is no name of a container image: /);
  });
});
