import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root, startServer, type TestServer } from "../harness.js";
import { millrace, toServer } from "./millrace.js";

const reference = readFileSync(join(root, "docs/reference/commands.md"), "utf8");

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  folder = mkdtempSync(join(tmpdir(), "millrace-shapes-"));
  writeFileSync(join(folder, "handler.js"), "export default ({ text }) => (console.log(text), text ?? 'x');");
  writeFileSync(join(folder, "inputs.jsonl"), '{"text":"a"}\n');
  writeFileSync(join(folder, "check.json"), '{"input":{"text":"hello"},"output":"hello"}');
  await printed("deploy", ".", "--name", "shapes");
  await printed("run", "shapes", '{"text":"hello"}');
}, 120_000);
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

/** What a command prints with --json, parsed. */
async function printed(...words: string[]): Promise<unknown[]> {
  const env = { ...toServer(server), MILLRACE_DATA_DIR: server.dataDir, HOME: folder };
  const { out, err } = await millrace([...words, "--json"], { env, folder });
  const lines = out.split("\n").filter((line) => line !== "");
  expect(lines.length, err).toBeGreaterThan(0);
  return lines.map((line) => JSON.parse(line));
}

/** The fields of a type's outermost object: which may be there, and which must. */
function fieldsOf(type: string): { all: string[]; must: string[] } {
  const all: string[] = [];
  const must: string[] = [];
  let depth = 0;
  for (const [token, field, mark] of type.matchAll(/[{}]|(\w+)(\??):/g)) {
    if (token === "{") depth++;
    else if (token === "}") depth--;
    else if (depth === 1 && field) {
      all.push(field);
      if (!mark) must.push(field);
    }
  }
  return { all, must };
}

/** Expects each object that was printed, or each entry of the array, to have the fields of the type. */
function expectShape(values: unknown[], type: string): void {
  const entries = values.flat();
  expect(entries.length).toBeGreaterThan(0);
  const { all, must } = fieldsOf(type);
  expect(must.length).toBeGreaterThan(0);
  for (const entry of entries) {
    const fields = Object.keys(entry as object);
    expect(all).toEqual(expect.arrayContaining(fields));
    expect(fields).toEqual(expect.arrayContaining(must));
  }
}

/** The help of a command, as the reference has it. */
function helpOf(name: string): string {
  const part = reference.split(/^## /m).find((each) => each.startsWith(`millrace ${name}\n`));
  return (part as string).replaceAll(/\s+/g, " ");
}

it.each([
  ["deploy", ["deploy", ".", "--name", "shapes"]],
  ["context list", ["context", "list"]],
  ["doctor", ["doctor"]],
  ["top", ["top"]],
  ["bench", ["bench", "shapes", "--jobs", "2"]],
  ["logs", ["logs", "shapes"]],
  ["run", ["run", "shapes", "--batch", "inputs.jsonl", "--out", "results.jsonl"]],
  ["dev", ["dev", "handler.js", "--test", "."]],
  ["backup", ["backup", "copy"]],
  ["template delete", ["template", "delete", "unused", "--yes"]],
])(
  "%s --json prints the shape that its help gives",
  async (name, words) => {
    if (name === "context list")
      await millrace(["context", "add", "rack", "--url", server.url], {
        env: { HOME: folder, MILLRACE_API_KEY: server.key },
      });
    if (name === "template delete") await printed("template", "create", "name=unused", `imageName=${folder}`);
    const [, type] = /With --json: .*?(\{ .*\}(?:\[\])?)/.exec(helpOf(name)) as RegExpExecArray;
    expectShape(await printed(...words), (type as string).replace(/, where .*/, ""));
  },
  60_000,
);

it.each([
  ["run", ["run", "shapes", "{}"], 0],
  ["run", ["run", "shapes", "{}", "--no-wait"], 1],
  ["health", ["health", "shapes"], 0],
  ["workers", ["workers", "shapes"], 0],
  ["scaling", ["scaling", "shapes"], 0],
  ["releases", ["releases", "shapes"], 0],
  ["endpoint list", ["endpoint", "list"], 0],
  ["template get", ["template", "get", "shapes"], 0],
  ["key list", ["key", "list"], 0],
  ["user list", ["user", "list"], 0],
  ["price list", ["price", "list"], 0],
])(
  "%s --json prints the shape that the reference links to (%j)",
  async (name, words, nth) => {
    if (name === "workers") await printed("run", "shapes", "{}"); // the last one may have been idle for too long
    const numbers = [...helpOf(name).matchAll(/#shape-(\d+)/g)].map(([, n]) => n);
    const type = reference.split(`### Shape ${numbers[nth]}\n`)[1]?.split("```")[1] as string;
    expectShape(await printed(...words), type);
  },
  60_000,
);
