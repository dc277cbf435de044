import { expect, it } from "vitest";
import { runCampaign } from "./campaign.js";
import type { DatabaseKind } from "./database.js";
import { table } from "./report.js";

/** `npm run faults` sets these; an ordinary test run is short, and prints the seed that it chose. */
const { MILLRACE_TEST_MINUTES, MILLRACE_TEST_SEED, MILLRACE_TEST_DATABASE, MILLRACE_TEST_SERVERS } = process.env;
const minutes = Number(MILLRACE_TEST_MINUTES ?? 0);
const isLong = minutes > 0;
const seed = Number(MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));

/** Breaks everything on servers with this database, or the one that `npm run faults` wants, and judges what came of it. */
export function nothingIsLostOn(usual: DatabaseKind): void {
  const database = (MILLRACE_TEST_DATABASE as DatabaseKind | undefined) ?? usual;
  const title = `nothing is lost, held twice or altered while everything breaks, on ${database}`;
  it(title, { timeout: minutes * 60_000 + 400_000 }, async () => {
    console.log(`The seed is ${seed}: MILLRACE_TEST_SEED=${seed} repeats its choices.`);
    const outcome = await runCampaign({
      seed,
      database,
      servers: Number(MILLRACE_TEST_SERVERS ?? (database === "sqlite" ? 1 : 2)),
      // a mount would outlive a test run that is cut off
      smallDisk: isLong,
      rageMs: isLong ? 45_000 : 6_000,
      forMs: minutes * 60_000,
      ...(isLong ? { onProgress: console.log } : {}),
    });
    console.log(table(outcome, `${database}, seed ${seed}`));
    const first = Object.entries(outcome.faults).flatMap(([name, [sentence]]) =>
      sentence ? [`${name}: ${sentence}`] : [],
    );
    expect(outcome.faults, first[0] ?? "no fault").toEqual({
      lost: [],
      doubleHeld: [],
      needless: [],
      wrong: [],
      webhooks: [],
    });
    expect(outcome.counts.acknowledged).toBeGreaterThan(50);
    expect(outcome.acts["server killed"]).toBeGreaterThan(0);
  });
}
