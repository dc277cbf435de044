// Row 3: whole jobs a second, from the first submission to the last job's end. Compared with nothing.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../scripts/set-up.mjs";
import { load } from "./child.mjs";
import { makeEndpoint, startMillrace } from "./millrace.mjs";

const lookEveryMs = 25;
const patienceMs = 120_000;

/** Rounds of `count` jobs on two warm workers of our SDK. */
export async function wholeJobs({ rounds, count, connections }) {
  const millrace = await startMillrace();
  const rates = [];
  try {
    const settings = { workersMin: 2, workersMax: 2 };
    const endpoint = await makeEndpoint(millrace, join(root, "bench/handlers/concurrent"), settings);
    const health = () => millrace.call("GET", `/v2/${endpoint}/health`);
    const plan = {
      url: `${millrace.url}/v2/${endpoint}/run`,
      headers: { authorization: `Bearer ${millrace.key}` },
      body: JSON.stringify({ input: { name: "bench" } }),
      connections,
      count,
    };
    await reach(async () => (await health()).workers.ready === 2);
    for (let round = 0; round <= rounds; round++) {
      const before = (await health()).jobs.completed;
      const beganAt = performance.now();
      const done = reach(async () => (await health()).jobs.completed === before + count);
      await load(plan);
      await done;
      if (round > 0) rates.push((count / (performance.now() - beganAt)) * 1_000);
    }
  } finally {
    await millrace.end();
  }
  return {
    name: `whole jobs per second, 2 workers with 64 jobs at a time, ${connections} connections`,
    unit: "/s",
    ours: rates,
  };
}

async function reach(probe) {
  const deadline = Date.now() + patienceMs;
  while (!(await probe())) {
    if (Date.now() > deadline) throw new Error(`Not within ${patienceMs} ms: ${probe}`);
    await sleep(lookEveryMs);
  }
}
