import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { limits } from "../../packages/server/src/limits/index.js";
import { makePuppets } from "../e2e/puppet.js";
import { submit } from "../e2e/wire.js";
import { call, type TestServer, until } from "../harness.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import type { Bystander } from "./crowds/bystander.js";
import { expectMemory } from "./crowds/crowd.js";

const mib = 2 ** 20;
/** Together they are several times what may be in memory for webhooks. */
const deliveries = 16;

describe.each(["SQLite", "PostgreSQL"])(
  "webhooks of 20 MB that are due when a server starts: %s",
  { timeout: 300_000 },
  (database) => {
    let beset: Beset | undefined;
    let server: TestServer;
    let bystander: Bystander;
    beforeAll(async () => {
      beset = await startBeset(database);
      ({ server, bystander } = beset);
    });
    afterAll(() => beset?.end());

    it("delay nobody, and come one after the other", async () => {
      let isUp = false;
      const arrived = new Set<string>();
      const receiver = createServer((request, reply) => {
        request.resume().on("end", () => {
          if (isUp) arrived.add(String(request.headers["webhook-id"]));
          reply.writeHead(isUp ? 200 : 500).end();
        });
      });
      await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
      beset?.ending.onTestFinished(() => void receiver.close());
      const webhook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
      const made = await makePuppets(beset!.ending, server);
      const worker = await made.puppet();
      const output = `{"output":"${"x".repeat(20 * mib - 100)}"}`;
      for (let n = 0; n < deliveries; n++) {
        const job = await submit(server, made.id, {}, { webhook });
        expect((await worker.take()).body?.id).toBe(job);
        expect((await worker.done(job, output)).status).toBe(200);
      }
      await server.kill();
      await sleep(limits.webhookRetryMs); // all of them are due by now
      isUp = true;
      await server.restart();
      await expectMemory(server, `${deliveries} deliveries of 20 MB`, 400, async () => {
        // some had failed three times before the server ended
        const areOver = async () => {
          const { body } = await call(server, "GET", "/v1/webhooks/deliveries");
          return body.every(({ state }: { state: string }) => state !== "pending");
        };
        const times = await bystander.during(() => until(areOver, 120_000));
        console.log(times, arrived.size);
        expect(times.failures).toEqual([]);
        expect(times.turnMs).toBeLessThan(100);
        expect(arrived.size).toBeGreaterThan(deliveries / 2);
      });
      await bystander.expectNothingLost("ever");
    });
  },
);
