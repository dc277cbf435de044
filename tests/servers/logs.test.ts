import { eventsOf } from "@millrace/api/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { call, makeEndpoint, until } from "../harness.js";
import { type Cluster, type Member, shared, startCluster } from "./cluster.js";

let cluster: Cluster;
const undos: (() => unknown)[] = [];
const ending = { onTestFinished: (undo: () => unknown) => void undos.unshift(undo) };
beforeAll(async () => {
  cluster = await startCluster(2);
});
afterAll(async () => {
  for (const undo of undos) await undo();
  await cluster?.end();
});

const source = `export default async ({ say, ms = 0 }) => {
  console.log("said " + say);
  await new Promise((done) => setTimeout(done, ms));
  return process.pid;
};`;
const authorization = (key = shared.MILLRACE_API_KEY) => ({ authorization: `Bearer ${key}` });
const read = async (server: Member, path: string, key?: string) => {
  const reply = await fetch(`${server.url}${path}`, { headers: { ...authorization(key), accept: "text/plain" } });
  return { status: reply.status, text: await reply.text() };
};
const hosts = async (endpointId: string) => {
  const query = `SELECT worker.id, host_no FROM worker JOIN endpoint ON endpoint.no = worker.endpoint_no
    WHERE endpoint.id = $1 AND worker.ended_at IS NULL`;
  return cluster.query<{ id: string; host_no: number }>(query, [endpointId]);
};
const memberOf = (hostNo?: number) => cluster.members.find((member) => member.hostNo === hostNo) as Member;
const otherThan = (member: Member) => cluster.members.find((each) => each !== member) as Member;
const runAt = (server: Member, endpoint: string, say: string, ms = 0) =>
  call(server, "POST", `/v2/${endpoint}/runsync`, { input: { say, ms } });

/** An endpoint with a worker that has printed a line, the server that keeps its log, and the other one. */
async function printed(say: string) {
  const [one] = cluster.members as [Member];
  const endpoint = await makeEndpoint(one, makeHandler(ending, source), { workersMax: 1, idleTimeout: 600 });
  expect((await runAt(one, endpoint, say)).body.status).toBe("COMPLETED");
  const [worker] = await hosts(endpoint);
  const keeper = memberOf(worker?.host_no);
  const id = worker?.id ?? "";
  await until(async () => (await read(keeper, `/v1/workers/${id}/logs`)).text.includes(`said ${say}`)); // after the job
  return { endpoint, worker: id, keeper, other: otherThan(keeper) };
}

/** The texts of a followed log, as they come. */
async function follow(server: Member, path: string, key?: string) {
  const texts: string[] = [];
  const notes: string[] = [];
  const leaving = new AbortController();
  const reply = await fetch(`${server.url}${path}?follow=true`, {
    headers: authorization(key),
    signal: leaving.signal,
  });
  const ended = (async () => {
    for await (const events of eventsOf(reply))
      for (const { event, data } of events) {
        if (event === "line") texts.push(JSON.parse(data).text);
        if (event === "note") notes.push(JSON.parse(data).note);
      }
  })().then(
    () => "ended",
    () => "cut",
  );
  return { texts, notes, ended, leave: () => leaving.abort() };
}

describe("A log that another server keeps", () => {
  it("is read over any server, while its worker lives and after its end", async () => {
    const { endpoint, worker, keeper, other } = await printed("hello");
    for (const path of [`/v1/workers/${worker}/logs`, `/v1/endpoints/${endpoint}/logs`]) {
      const there = await read(keeper, path);
      expect(there.text).toContain("said hello");
      expect(await read(other, path)).toEqual(there);
    }
    expect((await read(other, `/v1/workers/${worker}/logs?tail=0`)).text).toBe("");
    await call(other, "PATCH", `/v1/endpoints/${endpoint}`, { workersMin: 0, workersMax: 0 });
    await until(async () => (await hosts(endpoint)).length === 0);
    expect(await read(other, `/v1/workers/${worker}/logs`)).toMatchObject({
      status: 200,
      text: expect.stringContaining("said hello"),
    });
  });

  it("is followed over any server, until the key that follows it ends", async () => {
    const { endpoint, worker, other } = await printed("first");
    const { body: made } = await call(other, "POST", "/v1/apikeys", { name: "reads", scope: "read" });
    const following = await follow(other, `/v1/workers/${worker}/logs`, made.key);
    await until(() => following.texts.some((text) => text.includes("said first")));
    await runAt(other, endpoint, "second");
    await until(() => following.texts.some((text) => text.includes("said second")));
    await call(other, "DELETE", `/v1/apikeys/${made.id}`);
    expect(await following.ended).toBe("cut");
    expect((await read(other, `/v1/workers/${worker}/logs`, made.key)).status).toBe(401);
  });

  it("stands in order among the lines of workers elsewhere", async () => {
    const [one, two] = cluster.members as [Member, Member];
    const endpoint = await makeEndpoint(one, makeHandler(ending, source), { workersMin: 4, workersMax: 4 });
    await until(async () => new Set((await hosts(endpoint)).map(({ host_no }) => host_no)).size === 2, 60_000);
    const following = await follow(two, `/v1/endpoints/${endpoint}/logs`);
    const pids = new Set<number>();
    let said = 0;
    await until(async () => {
      const jobs = Array.from({ length: 4 }, () => runAt(one, endpoint, `${said++}`, 300));
      for (const { body } of await Promise.all(jobs)) pids.add(body.output);
      return pids.size === 4;
    }, 60_000);
    const shown = async (server: Member) => {
      const { text } = await read(server, `/v1/endpoints/${endpoint}/logs?tail=1000`);
      return text.split("\n").filter((line) => line.includes(" said "));
    };
    const lines = await shown(one);
    expect(lines).toHaveLength(said);
    expect(lines).toEqual([...lines].sort()); // each begins with its time
    expect(new Set(lines.map((line) => line.split(" ")[1])).size).toBe(4);
    expect(await shown(two)).toEqual(lines);
    const saidIn = (line: string) => /said \d+/.exec(line)?.[0] ?? "";
    const workerIn = (line: string) => line.split(" ")[1] ?? "";
    const heard = () => following.texts.flatMap((text) => /said \d+/.exec(text) ?? []);
    await until(() => heard().length === said);
    // a busy machine may bring a line from the other server later than others are held for it, but each worker's in order
    expect(heard().sort()).toEqual(lines.map(saidIn).sort());
    for (const worker of new Set(lines.map(workerIn)))
      expect(
        heard().filter((text) => lines.some((line) => saidIn(line) === text && workerIn(line) === worker)),
      ).toEqual(lines.filter((line) => workerIn(line) === worker).map(saidIn));
    expect(following.notes).toEqual([]);
    following.leave();
  });

  it("is asked for only by servers", async () => {
    const { worker, keeper } = await printed("secret");
    for (const mark of [
      undefined,
      "",
      "1.2.3.4",
      `${keeper.serverNo}.${Date.now()}.${"x".repeat(20)}.${"0".repeat(64)}`,
    ]) {
      const headers = { ...authorization(), ...(mark === undefined ? {} : { "x-millrace-passed-on": mark }) };
      const reply = await fetch(`${keeper.url}/servers/logs/${worker}?tail=10`, { headers });
      expect([reply.status, ((await reply.json()) as { code: string }).code]).toEqual([404, "NOT_FOUND"]);
    }
  });

  it("is out of reach while its server is away, and the refusal says so", async () => {
    const { endpoint, worker, keeper, other } = await printed("bye");
    const following = await follow(other, `/v1/endpoints/${endpoint}/logs`);
    await until(() => following.texts.some((text) => text.includes("said bye")));
    await keeper.kill();
    await until(() => following.notes.some((note) => note.includes("no longer followed")), 30_000);
    const refused = await until(async () => {
      const { status, text } = await read(other, `/v1/workers/${worker}/logs`);
      return status === 409 && text;
    }, 30_000);
    expect(JSON.parse(refused)).toMatchObject({
      code: "LOG_ELSEWHERE",
      error: expect.stringContaining("does not answer"),
    });
    following.leave();
    await keeper.restart();
    await until(async () => (await read(other, `/v1/workers/${worker}/logs`)).text.includes("said bye"), 30_000);
  });
});
