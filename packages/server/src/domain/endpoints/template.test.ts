import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  changesWorkers,
  isPath,
  joinCommand,
  splitCommand,
  type TemplateSettings,
  templateDefaults,
} from "./template.js";

describe("A command is split as a shell would", () => {
  it.each([
    ["node server.js", ["node", "server.js"]],
    ["  node\t server.js \n", ["node", "server.js"]],
    ['serve --greet "hello world"', ["serve", "--greet", "hello world"]],
    ["a'b c'd", ["ab cd"]],
    [`"it's" 'so "it" is'`, ["it's", 'so "it" is']],
    ['"a\\"b" "a\\nb"', ['a"b', "a\\nb"]],
    ["'a\\b'", ["a\\b"]],
    ["a\\ b", ["a b"]],
    ["'' \"\"", ["", ""]],
    ["x ''", ["x", ""]],
    ["$HOME `id` $(id) ; rm *", ["$HOME", "`id`", "$(id)", ";", "rm", "*"]],
    ["'open to the end", ["open to the end"]],
    ["trailing\\", ["trailing\\"]],
    ["", []],
    ["   ", []],
  ])("%s", (command, words) => {
    expect(splitCommand(command)).toEqual(words);
  });

  it("joined words are split into the same words again", () => {
    const word = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("a", " ", "'", '"', "\\", "$", "\n") }));
    fc.assert(
      fc.property(fc.array(word), (words) => {
        expect(splitCommand(joinCommand(words))).toEqual(words);
      }),
    );
  });
});

describe("An image reference is a directory of this machine", () => {
  it.each([
    ["/srv/handler", true],
    ["./examples/hello", true],
    ["../hello", true],
    ["~/handlers/hello", true],
    ["file:/srv/handler", true],
    [".", true],
    ["..", true],
    ["docker.io/library/python:3.12", false],
    ["python", false],
    ["registry:5000/a/b@sha256:00", false],
    [".hidden", false],
    ["", false],
  ])("'%s': %s", (imageName, path) => {
    expect(isPath(imageName)).toBe(path);
  });
});

describe("A save of a template", () => {
  const before: TemplateSettings = { ...templateDefaults, name: "t", imageName: "/srv/handler" };
  it.each<[Partial<TemplateSettings>, boolean]>([
    [{}, false],
    [{ name: "other" }, false],
    [{ readme: "other" }, false],
    [{ isPublic: true }, false],
    [{ imageName: "/srv/other" }, true],
    [{ env: { A: "1" } }, true],
    [{ dockerStartCmd: ["node"] }, true],
    [{ dockerEntrypoint: ["sh"] }, true],
    [{ containerDiskInGb: 51 }, true],
    [{ containerRegistryAuthId: "auth0000000001" }, true],
    [{ ports: [] }, true],
    [{ volumeMountPath: "/data" }, true],
  ])("of %j replaces the workers: %s", (change, replaces) => {
    expect(changesWorkers(before, { ...before, ...change })).toBe(replaces);
    expect(changesWorkers({ ...before, ...change }, before)).toBe(replaces);
  });
});
