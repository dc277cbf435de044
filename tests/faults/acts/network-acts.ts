import { setTimeout as sleep } from "node:timers/promises";
import type { TcpProxy } from "../machine/proxy.js";
import type { Link } from "./acts.js";
import type { Surroundings } from "./surroundings.js";

/** Shorter than every time-out between the parties, so that a frozen connection continues afterwards. */
const freezeMsMax = 4_000;
const delayMsMax = 400;
const slowMsMax = 3_000;

/** Harms the connections between two parties in one of the ways that networks do. */
export async function breakLink({ random, acts }: Surroundings, link: Link, proxy: TcpProxy): Promise<void> {
  const share = random.pick([0.1, 0.5, 1]);
  switch (random.pick(["reset", "reset", "half closed", "frozen", "slowed"] as const)) {
    case "reset":
      if (proxy.drop(() => random.chance(share)) > 0) acts.note("connections reset", { link });
      return;
    case "half closed":
      if (proxy.halfClose(() => random.chance(share)) > 0) acts.note("connections half closed", { link });
      return;
    case "frozen":
      return acts.during("connections frozen", { link }, async () => {
        proxy.freeze();
        await sleep(random.whole(100, freezeMsMax));
        proxy.thaw();
      });
    case "slowed":
      return acts.during("connections slowed", { link }, async () => {
        proxy.delay(random.whole(5, delayMsMax));
        await sleep(random.whole(200, slowMsMax));
        proxy.delay(0);
      });
  }
}
