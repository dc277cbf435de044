import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { millraceHere, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  folder = mkdtempSync(join(tmpdir(), "millrace-failures-"));
  writeFileSync(join(folder, "handler.js"), "export default () => 1;");
  writeFileSync(join(folder, "inputs.jsonl"), "{}\n");
  writeFileSync(join(folder, "bad.jsonl"), "{}\nbad\n");
  writeFileSync(join(folder, "millrace.db"), "no database");
  expect(await run("deploy", ".", "--name", "shout")).toMatchObject({ exit: 0 });
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});
const run = (...words: string[]) =>
  millraceHere(words, { env: { ...toServer(server), MILLRACE_DATA_DIR: server.dataDir, HOME: folder }, folder });

it.each([
  ["status shout nothing", 3, "There is no job 'nothing'", "millrace requests shout"],
  ["status shout nothing --wait", 3, "There is no job 'nothing'", "millrace requests shout"],
  ["stream shout nothing", 3, "There is no job 'nothing'", "millrace requests shout"],
  ["cancel shout nothing", 3, "There is no job 'nothing'", "millrace requests shout"],
  ["retry shout nothing", 3, "There is no job 'nothing'", "millrace requests shout --status FAILED"],
  ["rollback shout 99", 3, "Version 99 of this endpoint does not exist", "millrace releases shout"],
  ["rollback shout last", 3, "Name the version by its number.", "millrace releases shout"],
  ["requests shout --limit 900", 3, "'limit'", "millrace requests --help"],
  ["logs shout --since yesterday", 3, "'since'", "millrace logs --help"],
  ["logs shout --job nothing", 0, "No lines.", "millrace status shout nothing"],
  ["run shout [1]", 2, "must be a JSON object", "millrace run --help"],
  ["run shout @nothing", 2, "nothing cannot be read: no such file or directory.", "@file.json or -"],
  ["run shout --batch inputs.jsonl", 2, "Name a file for the results.", "--out results.jsonl"],
  ["run shout --batch inputs.jsonl --out o.jsonl --at-once 0", 2, "--at-once must be", "--at-once 32"],
  ["run shout --batch bad.jsonl --out o.jsonl", 2, "Line 2 of ", "millrace run --help"],
  ["run shout --batch . --out o.jsonl", 2, " is a folder.", "--batch inputs.jsonl"],
  ["run shout --batch inputs.jsonl --out .", 2, " is a folder.", "--out results.jsonl"],
  ["run shout --batch inputs.jsonl --out none/o.jsonl", 2, "cannot be written: no such file", "--out results.jsonl"],
  ["endpoint create name=x", 3, "'templateId'", "millrace endpoint create --help"],
  ["endpoint update shout workersMax=many", 3, "'workersMax' must be integer.", "millrace endpoint update --help"],
  ["endpoint update shout", 2, "missing required argument 'fields'", "millrace endpoint update --help"],
  ["endpoint grow shout", 2, "unknown command 'grow'", "millrace endpoint --help"],
  ["shrink", 2, "unknown command 'shrink'", "millrace --help"],
  ["template create name=x", 3, "'imageName'", "millrace template create --help"],
  ["key create name=k userId=nobody", 2, 'User "nobody" does not exist.', "millrace user list"],
  ["key create name=k scope=some", 3, "'scope' must be", "millrace key create --help"],
  ["context add rack --url rack", 2, "is not a server's address", "--url http://127.0.0.1:8000"],
  ["context use nowhere", 2, 'There is no context "nowhere".', "millrace context list"],
  ["deploy nowhere", 2, "nowhere does not exist.", "millrace deploy --help"],
  ["dev nowhere", 2, "nowhere does not exist.", "millrace dev --help"],
  ["dev handler.js --test nowhere", 2, "nowhere cannot be read: no such file", "--test shout/tests"],
  ["bench shout --jobs none", 2, "Write a whole number from 1 on.", "millrace bench --help"],
  ["backup /proc/x", 2, "/proc/x cannot be made: no such file or directory.", "Name a folder that you may write."],
  ["backup inputs.jsonl", 2, "inputs.jsonl is a file.", "Name a folder that you may write."],
  ["backup inputs.jsonl/x", 2, "inputs.jsonl is a file.", "Name a folder that you may write."],
  ["backup copy --data .", 1, "could not be copied to", "millrace doctor"],
  ["restore . --data restored", 1, "is damaged: file is not a database.", "Restore an older backup."],
  ["restore nowhere --data restored", 2, "it is no backup.", "millrace backup FOLDER"],
])("millrace %s ends with %i, why, and what to do", { timeout: 15_000 }, async (line, exit, why, hint) => {
  const ended = await run(...line.split(" "));
  expect(ended).toMatchObject({ exit, out: "", err: expect.stringContaining(why) });
  expect(ended.err.trimEnd().endsWith(hint), ended.err).toBe(true);
});

it("A restored data directory below /proc, and contexts there, are refused at once", async () => {
  const copy = join(folder, "whole");
  expect(await run("backup", copy)).toMatchObject({ exit: 0 });
  const restored = await run("restore", copy, "--data", "/proc/x");
  const env = { MILLRACE_API_KEY: server.key, MILLRACE_CONFIG_DIR: "/proc/x" };
  const added = await millraceHere(["context", "add", "rack", "--url", server.url], { env });
  for (const { exit, err } of [restored, added])
    expect({ exit, err }).toMatchObject({ exit: 2, err: expect.stringContaining("/proc/x cannot be made") });
});

it("A server's failure is told with what finds its cause", async () => {
  const env = { MILLRACE_URL: "http://127.0.0.1:1", MILLRACE_API_KEY: "x" };
  expect(await millraceHere(["endpoint", "list"], { env })).toMatchObject({
    exit: 4,
    err: expect.stringMatching(/^No server answers .* {2}npm start, in Millrace's folder\n$/),
  });
});
