import { setTimeout as sleep } from "node:timers/promises";
import { type Post, revive } from "../campaign/fleet.js";
import { isAlive, signal } from "../machine/processes.js";
import type { Surroundings } from "./surroundings.js";

const awayMsMax = 2_500;
const stopMsMax = 7_000;
const hourMs = 60 * 60_000;
const fullMsMax = 2_000;

/** Kills a server, and starts it again on the same directory; sometimes it is killed once more during that start. */
export async function killServer({ random, acts }: Surroundings, post: Post): Promise<void> {
  post.isDown = true;
  const again = random.chance(0.3);
  await acts.during("server killed", {}, async () => {
    await post.server.kill();
    // A server trusts the wall clock at its start: retention and time-outs depend on it.
    post.clock.set(0);
    await sleep(random.chance(0.5) ? 0 : random.whole(0, awayMsMax));
    const start = revive(post);
    if (again) {
      await sleep(random.whole(10, 400));
      acts.note("server killed");
      signal(post.server.pid, "SIGKILL");
    }
    await start;
  });
  post.isDown = false;
}

/** Stops a server for a while, as on a machine that is suspended or overloaded. */
export async function stopServer({ random, acts }: Surroundings, post: Post): Promise<void> {
  post.isDown = true;
  const { pid } = post.server;
  await acts.during("server stopped", {}, async () => {
    signal(pid, "SIGSTOP");
    await sleep(random.whole(100, stopMsMax));
    if (isAlive(pid)) signal(pid, "SIGCONT");
  });
  post.isDown = false;
}

/** Moves the wall clock by an hour, forwards or backwards, or back to the true time. */
export function moveClock({ random, acts }: Surroundings, { clock }: Post): void {
  acts.note("wall clock moved");
  clock.set(clock.offsetMs === 0 ? random.pick([hourMs, -hourMs]) : 0);
}

/** Leaves the disk under the data directories without a free byte for a while. */
export function fillDisk({ random, acts, fleet: { disk } }: Surroundings): Promise<void> {
  return acts.during("disk filled", {}, async () => {
    disk?.fill();
    await sleep(random.whole(200, fullMsMax));
    disk?.empty();
  });
}
