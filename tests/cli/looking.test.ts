import { afterAll, beforeAll, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { call, makeEndpoint, startServer, type TestServer } from "../harness.js";
import { millrace, millraceHere, startMillrace, startOnTerminal, toServer } from "./millrace.js";

let server: TestServer;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
beforeAll(async () => {
  server = await startServer();
  const handler = `export default async ({ say }, job) => { console.log("plain " + say); job.log.info("marked " + say); return say; };`;
  await makeEndpoint(server, makeHandler(ending, handler), { name: "talk", workersMax: 1, idleTimeout: 60 });
});
afterAll(async () => {
  await server?.end();
  for (const undo of undos) await undo();
});

const run = (...words: string[]) => millraceHere(words, { env: toServer(server) });
const json = async (...words: string[]) => JSON.parse((await run(...words, "--json")).out);

it("millrace logs prints what workers print, of one job or all, and follows it", async (test) => {
  const following = startMillrace(test, ["logs", "talk", "-f"], { env: toServer(server) });
  await run("run", "talk", '{"say":"one"}');
  await following.shows(/\d\d:\d\d:\d\d {2}\w+-\w+ │ plain one\n/);
  const { id } = await json("run", "talk", '{"say":"t\\u001b[31mwo"}');
  await following.shows("│ plain t\\x1b[31mwo\n");
  following.interrupt();
  expect(await following.ended).toBe(130);
  const { out } = await run("logs", "talk", "--job", id);
  expect(out).toMatch(/^\S+ {2}\w+-\w+ │ marked t\\x1b\[31mwo\n$/);
  const lines = (await run("logs", "talk", "--json")).out
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines.map(({ text }) => text)).toContain("plain one");
  expect(await run("logs", "talk", "--since", "yesterday")).toMatchObject({
    exit: 3,
    err: expect.stringContaining("'since'"),
  });
});

it("millrace workers, scaling, releases and rollback show what happened, and why", async () => {
  await run("run", "talk", '{"say":"x"}');
  const workers = await run("workers", "talk");
  expect(workers.out).toMatch(
    /^worker +id +state +since +jobs +version +GPUs +why\n\w+-\w+ +\w{14} +(idle|running) +\d+ s ago +0 +1/,
  );
  expect((await run("scaling", "talk")).out).toMatch(/ ago +\d+ ms +1 +0 +start 1 +a job waits and there is no worker/);
  const { id } = await json("endpoint", "get", "talk");
  await call(server, "PATCH", `/v1/endpoints/${id}`, { env: { A: "1" } });
  expect((await run("releases", "talk")).out).toMatch(/^ *version +made +state +workers +image +why\n +2 .*\n +1 /);
  expect((await run("rollback", "talk", "1")).out).toMatch(
    /^Version 3 has what version 1 had\. The files in \/.* stay as they are now\.\n$/,
  );
  expect(await run("rollback", "talk", "9")).toMatchObject({ exit: 3, err: expect.stringContaining("Version 9") });
  await expect.poll(async () => (await run("workers", "talk", "--ended")).out).toContain("ended");
});

it.for([60, 200])("on a terminal of %i columns lists and help fit, and ids stay whole", async (columns, test) => {
  const { id } = await json("run", "talk", '{"say":"x"}');
  const env = { ...toServer(server), NO_COLOR: "1" };
  for (const words of [["requests"], ["workers"], ["scaling"], ["releases"]]) {
    const showing = startOnTerminal(test, [...words, "talk"], { env, columns });
    expect(await showing.ended).toBe(0);
    expect(widest(showing.screen())).toBeLessThanOrEqual(columns);
    if (words[0] === "requests") expect(showing.screen()).toContain(id);
  }
  for (const words of [
    ["endpoint", "list"],
    ["template", "list"],
    ["top", "--once"],
    ["--help"],
    ["workers", "--help"],
  ]) {
    const showing = startOnTerminal(test, words, { env, columns });
    expect(await showing.ended).toBe(0);
    const isCommand = (line: string) => line.startsWith("  millrace "); // stays in one piece, to be pasted
    const others = showing
      .screen()
      .split("\n")
      .filter((line) => !isCommand(line));
    expect(widest(others.join("\n"))).toBeLessThanOrEqual(columns);
  }
});
const widest = (text: string): number => Math.max(...text.split(/\r*\n/).map((line) => line.length));

it.for([
  ["is killed", (its: TestServer) => its.kill()],
  ["stops", (its: TestServer) => its.stop()],
] as const)("millrace logs -f ends with how to go on when the server %s", async ([, end], test) => {
  const own = await startServer();
  test.onTestFinished(() => own.end());
  await makeEndpoint(own, makeHandler(test, "export default () => console.log('hello');"), { name: "bye" });
  const following = startMillrace(test, ["logs", "bye", "-f"], { env: toServer(own) });
  await millrace(["run", "bye"], { env: toServer(own) });
  await following.shows("│ hello\n");
  await end(own);
  expect(await following.ended).toBe(4);
  const last = `The connection to ${own.url} broke.  millrace logs bye -f --since 1m`;
  expect(following.screen().trimEnd().split("\n").at(-1)).toBe(last);
  await own.restart(); // a server that was killed leaves workers to the next one
});

it.each([
  [["logs", "looked", "--tail", "abc"], "Write a whole number from 1 on."],
  [["requests", "looked", "--status", "nonsense"], "Allowed choices are IN_QUEUE, IN_PROGRESS"],
  [["requests", "looked", "--limit", "0"], "Write a whole number from 1 on."],
])("%j is refused in words, as wrong use", async (words, why) => {
  expect(await millrace(words, { env: toServer(server) })).toMatchObject({
    exit: 2,
    err: expect.stringContaining(why),
  });
});

it("An address that is none is wrong use", async () => {
  const env = { MILLRACE_URL: "garbage", MILLRACE_API_KEY: "mr_x" };
  const refused = { exit: 2, err: expect.stringContaining('MILLRACE_URL is "garbage", which is not an address.') };
  expect(await millrace(["endpoint", "list"], { env })).toMatchObject(refused);
});
