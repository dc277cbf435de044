import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { makeHandler } from "../e2e/handlers.js";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { submit } from "../e2e/wire.js";
import { call, makeEndpoint, type TestServer } from "../harness.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import { type Bystander, expectUndisturbed } from "./crowds/bystander.js";
import { crowdOf, expectMemory } from "./crowds/crowd.js";

const usualMostMs = 100;

describe.each(["SQLite", "PostgreSQL"])(
  "no caller delays others, or fills the memory: %s",
  { timeout: 300_000 },
  (database) => {
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

    async function attack(name: string, mostMib: number, act: () => Promise<unknown>): Promise<void> {
      await expectMemory(server, name, mostMib, () => expectUndisturbed(bystander, name, act, usualMostMs));
      await bystander.expectNothingLost();
    }

    /** Makes a request again and again, so many at a time. */
    async function again(count: number, atOnce: number, one: () => Promise<{ status: number }>, statuses: number[]) {
      let left = count;
      const make = async () => {
        while (left-- > 0) expect(statuses).toContain((await one()).status);
      };
      await Promise.all(Array.from({ length: atOnce }, make));
    }

    it("variables of GraphQL with thousands of fields that their type does not have", async () => {
      const i = Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`k${n}`, 1]));
      const body = JSON.stringify({
        query: "query ($i: GpuTypeFilter) { gpuTypes(input: $i) { id } }",
        variables: { i },
      });
      await attack("200 queries", 300, () => again(200, 20, () => call(server, "POST", "/graphql", body), [400]));
    });

    it("commands of very many words", async () => {
      const input = { name: "words", imageName: "alpine:3", dockerArgs: "a ".repeat(100_000) };
      const body = JSON.stringify({
        query: "mutation ($i: SaveTemplateInput) { saveTemplate(input: $i) { id } }",
        variables: { i: input },
      });
      await attack("150 commands", 400, () => again(150, 50, () => call(server, "POST", "/graphql", body), [200]));
    });

    it("a worker's batches of results for jobs that it does not hold", async () => {
      const batch = Array.from({ length: limits.doneBatchMax }, (_, n) => ({ id: `unknown-${n}`, output: n }));
      await attack("60 batches", 300, () => again(60, 30, () => worker.doneBatch(batch), [200]));
    });

    it("pages of jobs with long errors", async () => {
      const error = JSON.stringify({ error: "é".repeat(49_000) });
      for (let n = 0; n < 100; n++) {
        const job = await submit(server, endpoint);
        expect((await worker.take()).body?.id).toBe(job);
        expect((await worker.done(job, error)).status).toBe(200);
      }
      const page = () => call(server, "GET", `/v2/${endpoint}/requests?limit=100&status=FAILED`);
      await attack("60 pages of 9 MB", 500, () => again(60, 10, page, [200]));
    });

    it("followers of long logs that read nothing", async () => {
      const noisy = await makeEndpoint(
        server,
        makeHandler(ending, ""),
        { workersMin: 2, workersMax: 2 },
        { dockerStartCmd: ["node", "-e", noise] },
      );
      const log = `/v1/endpoints/${noisy}/logs?tail=${limits.logTailMax}`;
      // so many that a follower's first page is as long as any
      await expect.poll(async () => (await fetchText(log)).length, { timeout: 60_000 }).toBeGreaterThan(4_000_000);
      await attack("64 followers", 500, () =>
        crowdOf(server, limits.logFollowersPerOwner, async (members) => {
          for (const member of members) {
            member.socket.removeAllListeners("data").pause();
            member.head("GET", `${log}&follow=true`);
          }
          await sleep(3_000);
        }),
      );
    });

    const fetchText = async (path: string) =>
      (await fetch(server.url + path, { headers: { authorization: `Bearer ${server.key}` } })).text();
  },
);

const noise = `
  let n = 0;
  const say = () => {
    for (let k = 0; k < 40; k++) console.log(n++ + "é".repeat(4_000));
  };
  process.on("SIGTERM", () => process.exit(0));
  setInterval(say, 250);
`;
