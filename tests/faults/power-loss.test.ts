import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { statusOf } from "../e2e/wire.js";
import { startServer, type TestServer } from "../harness.js";
import type { KnownJob } from "./disk/acknowledged.js";
import { withFolder } from "./disk/disk-audit.js";
import { recordDisk, wal } from "./disk/journaled-server.js";
import { auditCuts, cutAt, pointOf, randomPoints } from "./disk/power-cuts.js";
import { seeded } from "./random.js";
import type { DiskRecord } from "./shim/disk-journal.js";

const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));
const cuts = 200;

let records: DiskRecord[];
beforeAll(async () => {
  console.log(`The seed is ${seed}: MILLRACE_TEST_SEED=${seed} repeats its choices.`);
  records = await recordDisk(seed, async (journaled) => {
    await journaled.load(250);
    await journaled.server.stop();
    await journaled.restart();
    await journaled.load(250, 1);
  });
});

it("the disk's journal shows concurrent commits, checkpoints, and a restarted log", () => {
  const count = (kind: DiskRecord["kind"], name: string) =>
    records.filter((record) => record.kind === kind && record.name === name).length;
  const words = records.filter(({ kind }) => kind === "mark").length;
  expect(count("sync", wal)).toBeGreaterThan(50);
  expect(count("sync", wal)).toBeLessThan(words);
  expect(count("sync", "millrace.db")).toBeGreaterThan(2);
  const begun = records.filter(({ kind, name, at }) => kind === "write" && name === wal && at === 0);
  expect(begun.length).toBeGreaterThan(1);
});

it(`nothing acknowledged is lost at ${cuts} random power cuts`, { timeout: 300_000 }, async () => {
  const random = seeded(seed + 1);
  expect(await auditCuts(records, randomPoints(random, records, cuts), random)).toEqual([]);
});

it("a server starts on a disk after a power cut, and answers as before", { timeout: 180_000 }, async () => {
  const random = seeded(seed + 2);
  const first = pointOf(records, "endpoint");
  const points = [first, first, first, ...randomPoints(random, records, 1, first)];
  await cutAt(records, points, random, async ({ files, acknowledged: { endpoint, jobs } }) => {
    await withFolder(files, async (folder) => {
      const server = await startServer({ MILLRACE_DATA_DIR: folder, MILLRACE_RATE_LIMITS: "off" });
      try {
        for (const [job, known] of [...jobs].slice(-20)) await expectSame(server, endpoint ?? "", job, known);
      } finally {
        await server.end();
      }
    });
  });
});

async function expectSame(server: TestServer, endpoint: string, job: string, { end }: KnownJob): Promise<void> {
  const now = await statusOf(server, endpoint, job);
  if (!end) return;
  expect([job, now.status]).toEqual([job, end.status]);
  if (end.output !== undefined) expect(now.output).toEqual(JSON.parse(end.output));
}

it.each(["NORMAL", "OFF"])(
  "a store that does not sync its commits is detected (synchronous = %s)",
  {
    timeout: 120_000,
  },
  async (synchronous) => {
    const careless = join(import.meta.dirname, "shim/careless-sqlite.mjs");
    const env = { NODE_OPTIONS: `--import=${careless}`, CARELESS_SYNCHRONOUS: synchronous };
    const recorded = await recordDisk(seed, (journaled) => journaled.load(60), env);
    const random = seeded(seed + 3);
    const losses = await auditCuts(recorded, randomPoints(random, recorded, 12, pointOf(recorded, "submit")), random);
    expect(losses.flatMap(({ complaints }) => complaints).some((words) => /is gone/.test(words))).toBe(true);
  },
);
