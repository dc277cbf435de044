// Row 2: durable submissions a second, against a bare HTTP server.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load, startBare } from "./child.mjs";
import { makeEndpoint, startMillrace } from "./millrace.mjs";
import { median } from "./statistics.mjs";

const body = JSON.stringify({ input: { prompt: "a small input", steps: 20, seed: 7 } });

/** Interleaved rounds of both sides, after one of each that is not counted. */
export async function durableRun({ rounds, seconds, connections, nodeArgs }) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  const millrace = await startMillrace({ nodeArgs });
  const endpoint = await makeEndpoint(millrace, folder, { workersMax: 0 });
  const path = `/v2/${endpoint}/run`;
  const bare = await startBare(JSON.stringify(await millrace.call("POST", path, JSON.parse(body))));
  const plan = { headers: { authorization: `Bearer ${millrace.key}` }, body, connections, seconds };
  const rates = { millrace: [], bare: [] };
  try {
    for (let round = 0; round <= rounds; round++) {
      for (const [side, url] of [
        ["millrace", millrace.url + path],
        ["bare", bare.url + path],
      ]) {
        const counted = await load({ ...plan, url });
        if (round > 0) rates[side].push(counted.count / counted.seconds);
      }
    }
  } finally {
    await bare.end();
    await millrace.end();
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    name: `durable /run per second, ${connections} connections`,
    unit: "/s",
    ours: rates.millrace,
    theirs: rates.bare,
    against: "a bare node:http server",
    ratio: median(rates.millrace) / median(rates.bare),
  };
}
