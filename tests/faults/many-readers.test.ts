import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { makePuppets } from "../e2e/puppet.js";
import { submit } from "../e2e/wire.js";
import { type TestServer, until } from "../harness.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import { type Bystander, expectUndisturbed } from "./crowds/bystander.js";
import { crowdOf, expectMemory, type Hostile } from "./crowds/crowd.js";

const mib = 2 ** 20;
/** Bytes of the output; the rest of the body makes its reply a little larger. */
const outputBytes = 20 * mib - 100;
/** The most that lent memory and the sockets' buffers together may use. */
const mostMib = 500;
/** So many different results do not fit into the memory that is lent to all readers together. */
const different = 24;
/** Large readers must not delay any other request beyond this. */
const usualMostMs = 100;

describe.each(["SQLite", "PostgreSQL"])(
  "beside readers of a result of 20 MB others are served as usual: %s",
  { timeout: 600_000 },
  (database) => {
    let beset: Beset | undefined;
    let server: TestServer;
    let bystander: Bystander;
    let path: string;
    /** Paths of other results as large. */
    const others: string[] = [];
    beforeAll(async () => {
      beset = await startBeset(database);
      ({ server, bystander } = beset);
      const { id, puppet } = await makePuppets(beset.ending, server);
      const worker = await puppet();
      const finished = async (letter: string): Promise<string> => {
        const job = await submit(server, id);
        expect((await worker.take()).body?.id).toBe(job);
        expect((await worker.done(job, `{"output":"${letter.repeat(outputBytes)}"}`)).status).toBe(200);
        return `/v2/${id}/status/${job}`;
      };
      path = await finished("x");
      for (let n = 0; n < different; n++) others.push(await finished(String.fromCharCode(97 + n)));
    });
    afterAll(() => beset?.end());

    const attack = (name: string, count: number, act: (members: Hostile[]) => Promise<void>) =>
      expectMemory(server, name, mostMib, () =>
        expectUndisturbed(bystander, name, () => crowdOf(server, count, act), usualMostMs),
      );

    /** Bytes received on each connection so far. */
    const counted = (members: readonly Hostile[]): number[] => {
      const bytes = members.map(() => 0);
      members.forEach(({ socket }, at) => {
        socket.on("data", (data) => {
          bytes[at] = (bytes[at] as number) + data.length;
        });
      });
      return bytes;
    };

    it("250 that read all of it", async () => {
      await attack("250 readers", 250, async (members) => {
        const bytes = counted(members);
        for (const member of members) member.head("GET", path);
        await until(() => bytes.every((count) => count > outputBytes), 120_000);
        expect(members.filter(({ status }) => status !== 200)).toEqual([]);
      });
      await bystander.expectNothingLost();
    });

    it("250 requests on one connection, whose client disconnects after the tenth result", async () => {
      await attack("250 pipelined requests", 1, async (members) => {
        const [bytes, member] = [counted(members), members[0] as Hostile];
        for (let n = 0; n < 250; n++) member.head("GET", path);
        await until(() => (bytes[0] as number) > 10 * outputBytes, 120_000);
      });
      await bystander.expectNothingLost();
    });

    it("250, all by /status-sync", async () => {
      await attack("250 readers of /status-sync", 250, async (members) => {
        const bytes = counted(members);
        for (const member of members) member.head("GET", path.replace("/status/", "/status-sync/"));
        await until(() => bytes.every((count) => count > outputBytes), 120_000);
        expect(members.filter(({ status }) => status !== 200)).toEqual([]);
      });
      await bystander.expectNothingLost();
    });

    it("240 of 24 different results, none of which reads: what does not fit is refused, and memory comes back", async () => {
      expect(different * outputBytes).toBeGreaterThan(limits.lentBytesMax);
      await attack("240 deaf readers of 24 results", 240, async (members) => {
        for (const { socket } of members) socket.pause();
        for (const [at, member] of members.entries()) member.head("GET", others[at % different] as string);
        await sleep(limits.lentWaitMs + 2_000);
        for (const { socket } of members) socket.resume();
        // those who were told to come again, and those whose share was taken back because they did not read
        await until(() => members.every(({ status, socket }) => status !== 0 || socket.destroyed), 120_000);
        const refused = members.filter(({ status }) => status === 503);
        expect(refused.length).toBeGreaterThan(0);
        for (const { text } of refused) expect(text).toMatch(/\r\nretry-after: \d+\r\n/i);
      });
      await bystander.expectNothingLost();
    });

    it("1,000, only every fourth of which reads, over both status routes in turn", async () => {
      await attack("1,000 readers, 750 of which read nothing", 1_000, async (members) => {
        const reading = members.filter((_, at) => at % 4 === 0);
        const deaf = members.filter((_, at) => at % 4 !== 0);
        const bytes = counted(reading);
        for (const { socket } of deaf) socket.removeAllListeners("data").pause();
        const paths = [path, path.replace("/status/", "/status-sync/")];
        for (const [at, member] of members.entries()) member.head("GET", paths[(at >> 2) % 2] as string);
        await until(() => bytes.every((count) => count > outputBytes), 240_000);
        expect(reading.filter(({ status }) => status !== 200)).toEqual([]);
        await until(() => deaf.every(({ socket }) => socket.readableLength > 0), 60_000);
      });
      await bystander.expectNothingLost();
    });
  },
);
