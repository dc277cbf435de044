import { expect, it } from "vitest";
import { runCampaign, traceOf } from "./campaign.js";
import { kept } from "./kept-histories.js";
import { seeds } from "./seeds.js";
import { drawScript, type Script } from "./steps.js";

/** `npm run simulate` sets the minutes; an ordinary test run is short, and prints its first seed. */
const minutes = Number(process.env.MILLRACE_TEST_MINUTES ?? 0);
/**
 * The same histories in every ordinary run, so that a failure is caused by a change; `npm run simulate` searches for
 * new ones.
 */
const first = Number(process.env.MILLRACE_TEST_SEED ?? 5_000);

/** An ordinary run is these histories on every machine, however fast it is. */
const usual = 150;

function* from(seed: number): Generator<Script> {
  for (;;) yield drawScript(seed++);
}

it.each([3, 8, 17])("the history of a seed is the same every time (%i)", async (seed) => {
  const [once, again] = [await traceOf(drawScript(seed)), await traceOf(drawScript(seed))];
  expect(once.length).toBeGreaterThan(20);
  expect(again).toEqual(once);
});

it.each(kept)("never again: $why", async ({ script }) => {
  const { failure } = await runCampaign([script], () => false);
  expect(failure?.report).toBeUndefined();
});

/** Events that these histories must include, or they would prove little. */
const rare = [
  / is frozen$/,
  / goes on$/,
  / is held$/,
  /version \(?\d+\)? replaces/,
  /: It needs .* NVIDIA/,
  /: It needs .* vCPU/,
  / has a place$/,
  /: its GPU \S+ \(.*\) is gone/,
  /: another worker needs what it holds/,
  /: it took a job at the last moment/,
  /: a paused worker gives its memory back/,
];

it("keeps every promise in the histories of some chosen seeds", async () => {
  const lines: string[] = [];
  const { failure, histories } = await runCampaign(
    seeds.map(drawScript),
    () => false,
    (trace) => lines.push(...trace),
  );
  expect(failure?.report).toBeUndefined();
  expect(histories).toBe(seeds.length);
  expect(rare.filter((what) => !lines.some((line) => what.test(line)))).toEqual([]);
});

it("keeps every promise in random histories of clients, workers, losses and restarts", {
  timeout: minutes * 60_000 + 300_000,
}, async () => {
  console.log(`The first seed is ${first}: MILLRACE_TEST_SEED=${first} repeats these histories.`);
  const startedAt = performance.now();
  const told = { at: startedAt };
  const { histories, failure } = await runCampaign(from(first), (done) => {
    const passed = performance.now() - startedAt;
    if (minutes === 0) return done >= usual;
    if (performance.now() - told.at > 10_000) {
      told.at = performance.now();
      console.log(`${done} histories in ${Math.round(passed / 1_000)} s, ${perMinute(done, passed)} a minute`);
    }
    return passed > minutes * 60_000;
  });
  console.log(`${histories} histories, ${perMinute(histories, performance.now() - startedAt)} a minute`);
  if (failure) console.log(failure.report);
  expect(failure?.report).toBeUndefined();
  expect(histories).toBeGreaterThan(0);
});

const perMinute = (histories: number, ms: number) => Math.round((histories * 60_000) / ms);
