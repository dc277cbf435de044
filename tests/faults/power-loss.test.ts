import { expect, it } from "vitest";
import { type Ending } from "../e2e/handlers.js";
import { makePuppets } from "../e2e/puppet.js";
import { startServer } from "../harness.js";
import { Acknowledged, type Word } from "./acknowledged.js";
import { auditDisk, withFolder } from "./disk-audit.js";
import { loadDisk } from "./disk-load.js";
import { type Random, seeded } from "./random.js";
import { type DiskRecord, readJournal } from "./shim/disk-journal.js";
import { ShimmedDisk } from "./shim/disk-shim.js";
import { Platter } from "./shim/platter.js";

const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));

async function record(test: Ending, jobs: number, random: Random, env = {}): Promise<DiskRecord[]> {
  const disk = new ShimmedDisk();
  try {
    const server = await startServer({ ...disk.env, MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "warn", ...env });
    const hear = (word: Word) => disk.mark(word);
    try {
      const { id: endpoint, puppet } = await makePuppets(test, server);
      hear({ of: "endpoint", id: endpoint });
      await loadDisk({ server, endpoint, worker: await puppet(0), jobs, random, hear });
      await server.stop();
      await server.restart();
      await loadDisk({ server, endpoint, worker: await puppet(1), jobs, random, hear });
    } finally {
      await server.end();
    }
    return readJournal(disk.journal);
  } finally {
    disk.end();
  }
}
it("x", { timeout: 120_000 }, async (test) => {
  const random = seeded(seed);
  console.time("record");
  const records = await record(test, 500, random);
  console.timeEnd("record");
  const counts: Record<string, number> = {};
  for (const { kind, name } of records) counts[`${kind} ${name}`] = (counts[`${kind} ${name}`] ?? 0) + 1;
  console.log(counts, records.length);
  const platter = new Platter(random);
  const acknowledged = new Acknowledged();
  const cuts = new Set(Array.from({ length: 200 }, () => random.whole(1, records.length)));
  console.time("cuts");
  const wrong: string[] = [];
  for (const [n, one] of records.entries()) {
    if (one.kind === "mark") acknowledged.hear(JSON.parse(Buffer.from(one.bytes).toString()));
    else platter.apply(one);
    if (!cuts.has(n + 1)) continue;
    const found = await withFolder(platter.afterCut(), (folder) => auditDisk(folder, acknowledged));
    if (found.length > 0) wrong.push(`cut ${n + 1}: ${found.length} ${found.slice(0, 3)}`);
  }
  console.timeEnd("cuts");
  console.log(wrong.slice(0, 10), wrong.length);
  expect(wrong).toEqual([]);
});
