import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestServer, until } from "../harness.js";
import { type Balanced, makeBalanced } from "../lb/balanced.js";
import { type Beset, startBeset } from "./crowds/beset.js";
import { type Bystander, expectUndisturbed } from "./crowds/bystander.js";
import { crowdOf, expectMemory } from "./crowds/crowd.js";

const usualMostMs = 100;
const mostMib = 300;

describe("a worker that answers hundreds of requests at one moment delays nobody else", { timeout: 300_000 }, () => {
  let beset: Beset | undefined;
  let server: TestServer;
  let bystander: Bystander;
  let endpoint: Balanced;
  beforeAll(async () => {
    beset = await startBeset("SQLite");
    ({ server, bystander } = beset);
    endpoint = await makeBalanced(beset.ending, server, { workersMin: 1 });
    await endpoint.fetch("/");
  });
  afterAll(() => beset?.end());

  it.each([
    ["600 replies of 200 headers", 600, { headers: 200, hints: 0 }, 200],
    ["600 replies of 800 headers, which are refused", 600, { headers: 800, hints: 0 }, 502],
    ["500 replies after 16 early hints each", 500, { headers: 1, hints: 16 }, 103],
  ])("%s", async (name, count, { headers, hints }, status) => {
    let round = 0;
    const attack = () =>
      crowdOf(server, count, async (members) => {
        const gate = join(endpoint.folder, `gate-${headers}-${hints}-${++round}`);
        const path = `/lb/${endpoint.id}/together?gate=${gate}&headers=${headers}&hints=${hints}`;
        for (const member of members) member.head("GET", path);
        await sleep(500);
        writeFileSync(gate, "");
        await until(async () => members.every((member) => member.status !== 0), 60_000);
        expect(new Set(members.map((member) => member.status))).toEqual(new Set([status]));
      });
    await expectMemory(server, name, mostMib, () => expectUndisturbed(bystander, name, attack, usualMostMs, "max"));
    await bystander.expectNothingLost();
  });
});
