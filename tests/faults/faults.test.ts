import { afterAll, beforeAll, expect, it } from "vitest";
import { startServer, type TestServer } from "../harness.js";
import { runCampaign, tell } from "./campaign.js";

/** `npm run faults` sets both; a usual test run is short, with a seed that it prints. */
const minutes = Number(process.env.MILLRACE_TEST_MINUTES ?? 0);
const seed = Number(process.env.MILLRACE_TEST_SEED ?? Math.floor(Math.random() * 1_000_000_000));

const rageMs = minutes > 0 ? 25_000 : 12_000;
const roundMs = rageMs + 35_000;
const rounds = Math.max(1, Math.round((minutes * 60_000) / roundMs));

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ MILLRACE_RATE_LIMITS: "off", MILLRACE_LOG_LEVEL: "warn" });
});
afterAll(() => server?.end());

it("nothing is lost, held twice or changed while the server and workers are killed at random", {
  timeout: rounds * (roundMs + 15_000) + 180_000,
}, async () => {
  console.log(`The seed is ${seed}: MILLRACE_TEST_SEED=${seed} repeats its choices.`);
  const outcome = await runCampaign(server, { seed, rageMs, rounds });
  console.log(tell(outcome, seed));
  expect(outcome).toMatchObject({ lost: [], doubleHeld: [], needless: [], wrong: [] });
  expect(outcome.acknowledged).toBeGreaterThan(50);
  expect(outcome.kills.server).toBeGreaterThan(0);
});
