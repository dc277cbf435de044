import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeHandler } from "../e2e/handlers.js";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { submit } from "../e2e/wire.js";
import { call, makeEndpoint, type TestServer, until } from "../harness.js";
import { attackMs, deaf, manage, sendLarge, startSlowReceiver } from "./crowds/attacks.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import { type Bystander, expectUndisturbed } from "./crowds/bystander.js";
import { crowdOf, expectMemory, type Hostile } from "./crowds/crowd.js";

const mib = 2 ** 20;
/** The most that lent memory, the accounted bodies and the sockets' buffers together may use. */
const mostMib = 700;
/** One caller must not delay any other request beyond this. */
const usualMostMs = 100;

describe.each(["SQLite", "PostgreSQL"])("no caller delays others: %s", { timeout: 300_000 }, (database) => {
  let beset: Beset | undefined;
  let server: TestServer;
  let bystander: Bystander;
  let ending: Beset["ending"];
  let endpoint: string;
  let worker: Puppet;
  beforeAll(async () => {
    beset = await startBeset(database);
    ({ server, bystander, ending } = beset);
    const made = await makePuppets(ending, server);
    endpoint = made.id;
    worker = await made.puppet();
  });
  afterAll(() => beset?.end());

  async function attack(name: string, act: () => Promise<void>): Promise<void> {
    await expectMemory(server, name, mostMib, () => expectUndisturbed(bystander, name, act, usualMostMs));
    await bystander.expectNothingLost();
  }

  const crowd = (count: number, act: (member: Hostile) => void) =>
    crowdOf(server, count, async (members) => {
      for (const member of members) act(member);
      await sleep(attackMs);
    });
  const template = (name: string, more: object) =>
    manage(server, "POST", "/v1/templates", { name, imageName: "alpine:3", isServerless: true, ...more });

  /** A job that the worker holds. */
  async function held(): Promise<string> {
    const job = await submit(server, endpoint);
    expect((await worker.take()).body?.id).toBe(job);
    return job;
  }

  describe("without a key", () => {
    it.each(["/healthz", "/v1/openapi.json", "/metrics", "/v1/templates"])("pipelining %s", async (path) => {
      const many = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`.repeat(1_100);
      await attack(`50 x 1,100 pipelined ${path}`, () =>
        crowd(50, (member) => {
          deaf(member);
          member.socket.write(many);
        }),
      );
    });

    it("sending chunks of one byte", async () => {
      const chunks = "1\r\nx\r\n".repeat(300_000);
      const head = "POST /v1/templates HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n";
      await attack("4 x 300,000 chunks of one byte", () => crowd(4, ({ socket }) => void socket.write(head + chunks)));
    });
  });

  describe("without a key, at 100 connections at once,", () => {
    it.each([
      ["thousands of headers", `GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n${"a:\r\n".repeat(3_000)}\r\n`],
      ["long escaped paths", `GET /${"%25".repeat(5_000)} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`],
    ])("%s", (name, request) => attack(`100 x ${name}`, () => crowd(100, ({ socket }) => void socket.write(request))));
  });

  describe("with a key, by", () => {
    const large = { env: { A: "x".repeat(120_000), B: "y".repeat(110_000) } };

    it("lists of large entries that it does not read", async () => {
      for (let n = 0; n < 40; n++) await template(`large ${n}`, large);
      await attack("300 lists of 9 MB", () =>
        crowd(300, (member) => {
          deaf(member);
          member.head("GET", "/v1/templates");
        }),
      );
    });

    it("lists of 14,000 templates", async () => {
      const makers = Array.from({ length: 50 }, async (_, maker) => {
        for (let n = maker; n < 14_000; n += 50) await template(`one of many ${n}`, {});
      });
      await Promise.all(makers);
      const query = JSON.stringify({ query: "{ myself { podTemplates { id name } } }" });
      await attack("50 lists of 14,000 templates, over REST and GraphQL", () =>
        crowd(50, (member) => {
          member.head("GET", "/v1/templates");
          member.head("GET", "/v2/templates");
          member.head("POST", "/graphql", { "content-length": query.length }).socket.write(query);
        }),
      );
    });

    it("lists of releases that it does not read", async () => {
      const { id: templateId } = await template("released", large);
      const { id } = await manage(server, "POST", "/v1/endpoints", { name: "released", templateId, workersMax: 0 });
      for (let n = 0; n < 20; n++)
        await manage(server, "PATCH", `/v1/endpoints/${id}`, { env: { ...large.env, N: String(n) } });
      await attack("100 lists of releases", () =>
        crowd(100, (member) => {
          deaf(member);
          member.head("GET", `/v1/endpoints/${id}/releases`);
        }),
      );
    });

    it("GraphQL answers", async () => {
      const env = Object.fromEntries(Array.from({ length: 4_900 }, (_, n) => [`N${n}`, ""]));
      await template("long", { env });
      await template("told", { readme: "r".repeat(100_000) });
      const aliases = (of: string) => Array.from({ length: 50 }, (_, n) => `a${n}:podTemplates{${of}}`).join(" ");
      for (const of of ["name env{key value}", "readme"]) {
        const query = JSON.stringify({ query: `{myself{${aliases(of)}}}` });
        await attack(`20 queries of 50 aliases of ${of}`, () =>
          crowd(20, (member) => {
            deaf(member);
            member.head("POST", "/graphql", { "content-length": query.length }).socket.write(query);
          }),
        );
      }
    });

    it("bodies of templates", async () => {
      const { id } = await template("changed", {});
      const env = Object.fromEntries(Array.from({ length: 4_900 }, (_, n) => [`K${n}`, "v"]));
      const bodies = [JSON.stringify({ env }), `{"env":[${"{},".repeat(60_000)}{}]}`, `{"env":${"[".repeat(200_000)}`];
      for (const body of bodies)
        await attack(`40 bodies of templates: ${body.slice(0, 12)}`, () =>
          crowd(40, (member) => {
            member.head("PATCH", `/v1/templates/${id}`, { "content-length": body.length }).socket.write(body);
          }),
        );
    });

    it("queries whose fields are compared pairwise", async () => {
      const query = JSON.stringify({ query: `{${'gpuTypes(input:{id:"x"}){id} '.repeat(140)}}` });
      await attack("50 queries of 140 fields with arguments", () =>
        crowd(50, (member) => {
          member.head("POST", "/graphql", { "content-length": query.length }).socket.write(query);
        }),
      );
    });

    it("pages of large jobs that it does not read", async () => {
      const output = JSON.stringify({ output: "é".repeat(40_000) });
      for (let n = 0; n < 60; n++) await worker.done(await held(), output);
      await attack("20 pages of 5 MB of jobs", () =>
        crowd(20, (member) => {
          deaf(member);
          member.head("GET", `/v2/${endpoint}/requests?limit=100`);
        }),
      );
    });

    it("inputs of very many names", async () => {
      const names = Array.from({ length: 240_000 }, (_, n) => `"${n}":1`).join(",");
      const body = `{${names},"input":{}}`;
      const unserved = await makeEndpoint(server, makeHandler(ending), { workersMax: 0 });
      await attack("10 bodies of 240,000 names", () =>
        crowd(10, (member) => {
          member.head("POST", `/v2/${unserved}/run`, { "content-length": body.length }).socket.write(body);
        }),
      );
    });
  });

  describe.each([1, 4])("with texts of many megabytes, %i at a time:", (count) => {
    it("inputs", async () => {
      const unserved = await makeEndpoint(server, makeHandler(ending), { workersMax: 0 });
      const body = `{"input":{"text":"${"x".repeat(10 * mib - 100)}"}}`;
      await attack(`${count} writers of inputs of 10 MB`, () =>
        sendLarge(count, () => call(server, "POST", `/v2/${unserved}/run`, body)),
      );
      await call(server, "POST", `/v2/${unserved}/purge-queue`);
    });

    it("results", async () => {
      const word = `{"output":"${"x".repeat(20 * mib - 100)}"}`;
      await attack(`${count} writers of results of 20 MB`, () =>
        sendLarge(count, async () => {
          await submit(server, endpoint);
          let job: string | undefined;
          while (job === undefined) job = (await worker.take()).body?.id;
          for (;;) {
            const reply = await worker.done(job, word);
            if (reply.status !== 503) return reply;
          }
        }),
      );
      // Two takes at once can return the same job again to this worker, while other jobs wait.
      await call(server, "POST", `/v2/${endpoint}/purge-queue`);
      const held = async () => (await call(server, "GET", `/v2/${endpoint}/health`)).body.jobs.inProgress;
      while ((await held()) > 0) await worker.done((await worker.take()).body?.id, { output: null });
    });
  });

  describe("with a worker's secret, by", () => {
    it.each([
      ["a status of 20 MB", () => `{"output":1,"status":[${"[],".repeat(6 * mib)}[]]}`],
      ["a result of very many names", () => `{"output":1,${Array.from({ length: 1e6 }, (_, n) => `"${n}":0`)}}`],
      ["an error of 20 MB", () => `{"error":"${"é".repeat(9 * mib)}"}`],
    ])("%s", async (name, body) => {
      const word = body();
      await attack(name, async () => {
        expect((await worker.done(await held(), word)).status).toBe(200);
      });
    });

    it("polls for inputs of 10 MB that it does not read", async () => {
      const input = { text: "x".repeat(10 * mib - 100) };
      const jobs: string[] = [];
      for (let n = 0; n < 12; n++) jobs.push(await submit(server, endpoint, input));
      const { pathname, search } = new URL(worker.takeUrl(false));
      await attack("50 polls for 12 inputs of 10 MB", () =>
        crowdOf(server, 50, async (members) => {
          for (const member of members) {
            deaf(member);
            member.head("GET", pathname + search, { authorization: worker.env.RUNPOD_AI_API_KEY as string });
          }
          await sleep(attackMs);
          expect(members.filter(({ socket }) => socket.readableLength > 0).length).toBeGreaterThan(0);
        }),
      );
      // The client that polled is gone, and the jobs wait as before.
      for (const job of jobs) {
        expect((await worker.take()).body?.id).toBe(job);
        expect((await worker.done(job, { output: null })).status).toBe(200);
        const { body } = await call(server, "GET", `/v2/${endpoint}/status/${job}`);
        expect(body).toMatchObject({ status: "COMPLETED", retries: 0 });
      }
    });

    it("results of 20 MB with webhooks, to a receiver that reads slowly", async () => {
      const { read, url: webhook, receiver } = await startSlowReceiver();
      const result = `{"output":"${"é".repeat(9 * mib)}"}`;
      try {
        await attack("4 results of 18 MB with webhooks", async () => {
          for (let n = 0; n < 4; n++) {
            const job = await submit(server, endpoint, {}, { webhook });
            expect((await worker.take()).body?.id).toBe(job);
            expect((await worker.done(job, result)).status).toBe(200);
          }
          await sleep(attackMs);
        });
        await until(async () => read.length >= 4, 60_000);
        for (const bytes of read) expect(bytes).toBeGreaterThan(18 * mib);
      } finally {
        receiver.closeAllConnections();
        receiver.close();
      }
    });

    it("chunks of 10 MB with metrics of 5 MB, and readers of their events", async () => {
      const job = await held();
      const chunk = `{"output":"${"x".repeat(10 * mib)}","metrics":{"a":"${"y".repeat(5 * mib)}"}}`;
      await attack("a chunk of 15 MB and 50 readers", async () => {
        expect((await worker.chunk(job, chunk)).status).toBe(200);
        await crowd(50, (member) => {
          deaf(member);
          member.head("GET", `/v2/${endpoint}/stream/${job}`, { accept: "text/event-stream" });
        });
      });
      await finish(job);
    });

    it("thousands of tiny chunks, and readers of their events", async () => {
      const job = await held();
      for (let n = 0; n < 10; n++)
        await Promise.all(Array.from({ length: 1_000 }, () => worker.chunk(job, '{"output":1}')));
      await attack("10,000 chunks and 100 readers", () =>
        crowd(100, (member) => {
          member.head("GET", `/v2/${endpoint}/stream/${job}`, { accept: "text/event-stream" });
        }),
      );
      await finish(job);
    });

    async function finish(job: string): Promise<void> {
      await worker.done(job, { output: null });
      await until(async () => (await call(server, "GET", `/v2/${endpoint}/status/${job}`)).status === 200);
    }
  });

  it("no other client's job is lost after all attacks", () => bystander.expectNothingLost("ever"));
});
