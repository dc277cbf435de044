import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json as jsonIn } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { call, journal, makeEndpoint, startServer, type TestServer, until } from "../harness.js";
import { millraceHere, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off" });
  folder = mkdtempSync(join(tmpdir(), "millrace-acting-"));
  const pod = `import { appendFileSync } from "node:fs";
appendFileSync(process.env.STARTS, process.pid + "\\n");
setInterval(() => {}, 60_000);`;
  writeFileSync(join(folder, "main.mjs"), pod);
  writeFileSync(join(folder, "handler.mjs"), "export default () => 1;");
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const run = (...words: string[]) => millraceHere(words, { env: toServer(server), folder });
const json = async (...words: string[]) => {
  const ended = await run(...words, "--json");
  expect(ended).toMatchObject({ exit: 0, err: "" });
  return JSON.parse(ended.out);
};
const isAlive = (pid: string) => {
  try {
    return process.kill(Number(pid), 0);
  } catch {
    return false;
  }
};

it("millrace pod stop and start end a pod's process, and start another", async () => {
  const starts = join(folder, "starts");
  const started = (count: number) => until(() => journal(starts).length === count && journal(starts));
  const command = JSON.stringify([process.execPath, "main.mjs"]);
  const fields = [`imageName=${folder}`, `dockerStartCmd=${command}`, "computeType=CPU", `env.STARTS=${starts}`];
  await json("pod", "create", "name=box", ...fields);
  const [first = ""] = await started(1);
  expect(isAlive(first)).toBe(true);

  expect(await json("pod", "stop", "box")).toMatchObject({ name: "box", desiredStatus: "EXITED", status: "EXITED" });
  await until(() => !isAlive(first));
  expect((await run("pod", "list")).out).toMatch(/^box +\w+ +EXITED +EXITED +/m);
  expect(await run("pod", "restart", "box")).toMatchObject({
    exit: 3,
    err: expect.stringContaining("The pod is stopped: start it instead."),
  });

  expect((await run("pod", "start", "box")).out).toMatch(/^name .*\nbox +\w+ +RUNNING .*\n$/);
  const [, second = ""] = await started(2);
  expect(isAlive(second)).toBe(true);
  await json("pod", "delete", "box", "--yes");
  await until(() => !isAlive(second));
});

it("millrace webhook pause holds a receiver's deliveries back, resume sends them, and redeliver sends one again", async (test) => {
  const received: string[] = [];
  const receiver = createServer(async (request, reply) => {
    received.push(((await jsonIn(request)) as { id: string }).id);
    reply.end();
  }).listen(0, "127.0.0.1");
  test.onTestFinished(() => void receiver.close());
  await once(receiver, "listening");
  const origin = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const endpoint = await makeEndpoint(server, folder, { name: "calls", workersMax: 1, idleTimeout: 60 });
  const submit = async (): Promise<string> =>
    (await call(server, "POST", `/v2/${endpoint}/run`, { input: {}, webhook: `${origin}/done` })).body.id;

  const first = await submit();
  await until(async () => (await json("webhook", "list")).length === 1);
  expect(received).toEqual([first]);
  expect((await run("webhook", "list")).out).toMatch(new RegExp(`^${origin} +\\w+ +healthy +0 +0$`, "m"));

  expect(await json("webhook", "pause", `${origin}/done`)).toMatchObject({ origin, state: "paused" });
  const second = await submit();
  await until(async () => (await json("webhook", "get", origin)).held === 1);
  expect(await json("webhook", "deliveries", "--state", "held")).toMatchObject([{ jobId: second, attempts: [] }]);
  expect(received).toEqual([first]);

  expect(await json("webhook", "resume", origin)).toMatchObject({ origin, state: "healthy" });
  await until(() => received.length > 1);
  expect(received).toEqual([first, second]);

  const [delivery] = await until(async () => {
    const listed = await json("webhook", "deliveries", "--job", first, "--state", "delivered");
    return listed.length > 0 && listed;
  });
  expect(delivery).toMatchObject({ jobId: first, url: `${origin}/done`, attempts: [{ status: 200 }] });
  expect(await json("webhook", "deliveries", "--before", delivery.id)).toEqual([]);
  const again = await run("webhook", "redeliver", delivery.id);
  expect(again.out).toMatch(new RegExp(`^delivery .*\n${delivery.id} +${first} +pending +1 +`));
  await until(() => received.length > 2);
  expect(received).toEqual([first, second, first]);
  expect(await run("webhook", "redeliver", "msg_nothing")).toMatchObject({
    exit: 3,
    err: "There is no delivery 'msg_nothing'. Deliveries are kept for a day.  millrace webhook deliveries\n",
  });
});
