import { setTimeout as sleep } from "node:timers/promises";
import type { Deed } from "./deed.js";
import { breakLink } from "./network-acts.js";
import type { Surroundings } from "./surroundings.js";

const awayMsMax = 2_000;
const endedMax = 4;

/** Acts against a database that is a separate process; none if it is a part of the server. */
export function outsideActs(around: Surroundings): Deed[] {
  const { fleet, random, acts } = around;
  const { outside } = fleet.database;
  if (outside === undefined) return [];
  let isAway = false;

  async function endConnections(): Promise<void> {
    if (isAway) return;
    const ended = await outside!.endConnections(random.whole(1, endedMax)).catch(() => 0);
    for (let n = 0; n < ended; n++) acts.note("database connection ended");
  }

  async function kill(): Promise<void> {
    if (isAway) return;
    isAway = true;
    await acts.during("database killed", {}, async () => {
      await outside!.stop(random.pick(["SIGKILL", "SIGQUIT", "SIGINT"] as const));
      await sleep(random.chance(0.5) ? 0 : random.whole(0, awayMsMax));
      await outside!.start();
    });
    isAway = false;
  }

  return [
    { weight: 8, act: endConnections },
    { weight: 1.5, hidesLosses: true, act: kill },
    // A server that lost its database for some seconds does not count any worker's silence.
    { weight: 5, hidesLosses: true, act: () => breakLink(around, "database", outside.proxy) },
  ];
}
