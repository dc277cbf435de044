import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type Docker from "dockerode";
import { limits } from "../../limits.js";

/** By this label a container is known to be a worker of ours. */
export const workerLabel = "millrace.worker";

/**
 * Tells of each worker's container that has ended. The engine forgets its events when it restarts: after each connection
 * all containers of ours are looked through, so an end that nobody told is found.
 */
export function followEnds(docker: Docker, tell: (workerId: string) => void): { watch: () => void; close: () => void } {
  const closing = new AbortController();
  const told = new Set<string>();
  let isWatching = false;

  async function tellEnded(): Promise<void> {
    const filters = { label: [workerLabel], status: ["exited", "dead"] };
    for (const { Labels, Id } of await docker.listContainers({ all: true, filters })) {
      if (told.has(Id)) continue;
      told.add(Id);
      tell(Labels[workerLabel] ?? "");
    }
  }

  async function follow(): Promise<void> {
    const filters = { type: ["container" as never], event: ["die"], label: [workerLabel] };
    const events = (await docker.getEvents({ filters, abortSignal: closing.signal })) as unknown as Readable;
    await tellEnded();
    for await (const line of createInterface({ input: events })) {
      const { Actor } = JSON.parse(line) as { Actor: { ID: string; Attributes: Record<string, string> } };
      told.add(Actor.ID);
      tell(Actor.Attributes[workerLabel] ?? "");
    }
  }

  async function watch(): Promise<void> {
    while (!closing.signal.aborted) {
      await follow().catch(() => {}); // the engine is away, or has hung up
      await new Promise((again) => setTimeout(again, limits.engineRetryMs).unref());
    }
  }

  return {
    watch: () => {
      if (!isWatching) void watch();
      isWatching = true;
    },
    close: () => closing.abort(),
  };
}
