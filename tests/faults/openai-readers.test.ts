import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makePuppets, type Puppet } from "../e2e/puppet.js";
import { type TestServer, until } from "../harness.js";
import { attackMs, deaf } from "./crowds/attacks.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import { type Bystander, expectUndisturbed } from "./crowds/bystander.js";
import { crowdOf, expectMemory, type Hostile } from "./crowds/crowd.js";

/** The most that lent memory and the sockets' buffers together may use. */
const mostMib = 500;
/** Large readers must not delay any other request beyond this. */
const usualMostMs = 100;
const chars = 19 * 2 ** 20;

/** Outputs of nearly 20 MB, as JSON. */
const outputs = {
  "an object": `{"choices":[{"text":"${"é".repeat(chars / 2)}"}]}`,
  "a list": `[${`{"choices":[{"text":"${"x".repeat(180)}"}]},`.repeat(chars / 210)}null]`,
  "a text": `"${"a\\n\\u00e9 \\\\".repeat(chars / 12)}"`,
  "blanks in brackets": `[${" ".repeat(chars)}]`,
};

describe.each(["SQLite", "PostgreSQL"])(
  "beside readers of OpenAI replies of 20 MB others are served as usual: %s",
  { timeout: 600_000 },
  (database) => {
    let beset: Beset | undefined;
    let server: TestServer;
    let bystander: Bystander;
    let endpoint: string;
    let worker: Puppet;
    beforeAll(async () => {
      beset = await startBeset(database);
      ({ server, bystander } = beset);
      const { id, puppet } = await makePuppets(beset.ending, server);
      endpoint = id;
      worker = await puppet();
    });
    afterAll(() => beset?.end());

    let lastKey = 0;
    /** A way for clients to ask for one job's answer together. */
    const asking = (body: string) => {
      const key = `answer-${lastKey++}`;
      return (member: Hostile) => {
        const headers = { "content-length": body.length, "idempotency-key": key };
        member.head("POST", `/v2/${endpoint}/openai/v1/completions`, headers).socket.write(body);
      };
    };
    const attack = (name: string, count: number, act: (members: Hostile[]) => Promise<void>) =>
      expectMemory(server, name, mostMib, () =>
        expectUndisturbed(bystander, name, () => crowdOf(server, count, act), usualMostMs),
      );

    it.each(Object.entries(outputs))("100 that read nothing of a stream whose chunk is %s", async (what, output) => {
      await attack(`100 readers of ${what}`, 100, async (members) => {
        const ask = asking('{"stream": true}');
        for (const member of members) {
          deaf(member);
          ask(member);
        }
        const { body } = await worker.take();
        expect((await worker.chunk(body?.id as string, `{"output":${output}}`)).status).toBe(200);
        await sleep(attackMs);
        await worker.done(body?.id as string, "{}");
      });
      await bystander.expectNothingLost();
    });

    it.each(Object.entries(outputs))("20 that read a result that is %s", async (what, output) => {
      await attack(`20 readers of the result ${what}`, 20, async (members) => {
        const ask = asking("{}");
        for (const member of members) ask(member);
        const { body } = await worker.take();
        expect((await worker.done(body?.id as string, `{"output":${output}}`)).status).toBe(200);
        await until(() => members.every(({ status }) => status > 0), 120_000);
        expect(members.filter(({ status }) => status !== 200 && status !== 503)).toEqual([]);
      });
      await bystander.expectNothingLost();
    });
  },
);
