import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { realTime } from "../../clock.js";
import type { HiddenSpan } from "../../domain/access/secret.js";
import { limits } from "../../limits/index.js";
import type { ImageSpec } from "../../provider.js";
import type { Engine } from "./engine.js";

const workerLabel = "millrace.worker";
const hostLabel = "millrace.host";
const hiddenLabel = "millrace.hidden";
export type Labels = Record<string, string>;

/** The labels of a worker's container: that it is a worker, its host, and where its environment holds secrets. */
export const workerLabels = (hostId: string, { workerId, hidden = [] }: ImageSpec): Labels => ({
  [workerLabel]: workerId,
  [hostLabel]: hostId,
  [hiddenLabel]: JSON.stringify(hidden), // also if there are none: the image may have a label of this name
});

/** Where a worker's environment holds secrets. */
export const hiddenOf = (labels: Labels | undefined): HiddenSpan[] => JSON.parse(labels?.[hiddenLabel] ?? "[]");

/**
 * Reports each worker's container that ends. Engines forget their events when they restart, so after each connection
 * every container of this host is reported: that finds missed ends, and containers that are no longer wanted.
 */
export function followEnds(
  engine: Engine,
  hostId: string,
  tell: (workerId: string) => void,
): { watch: () => void; close: () => void } {
  const closing = new AbortController();
  const ours = [`${hostLabel}=${hostId}`];
  let isWatching = false;
  const tellOf = (labels: Labels | undefined) => {
    const workerId = labels?.[workerLabel];
    if (workerId) tell(workerId);
  };

  async function follow(): Promise<void> {
    // Podman uses Docker's event names, but filters by its own
    const filters = { type: ["container" as never], event: ["die", "died"], label: ours };
    const events = (await engine.docker.getEvents({ filters, abortSignal: closing.signal })) as unknown as Readable;
    const lines = createInterface({ input: events });
    const over = new Promise<void>((end) => events.once("close", end));
    // if the engine hangs up, the close reports it
    for (const each of [events, lines]) each.on("error", () => {});
    try {
      lines.on("line", (line) => tellOf(labelsOf(line)));
      const all = await engine.docker.listContainers({ all: true, filters: { label: ours } });
      for (const { Labels } of all) tellOf(Labels);
      await over;
    } finally {
      lines.close();
      events.destroy();
    }
  }

  async function watch(): Promise<void> {
    while (!closing.signal.aborted) {
      await follow().catch(() => {}); // the engine is away or has hung up
      await new Promise<void>((again) => realTime.after(limits.engineRetryMs, again).unref());
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

/** The labels in an event. */
function labelsOf(line: string): Labels | undefined {
  try {
    return (JSON.parse(line) as { Actor?: { Attributes?: Labels } }).Actor?.Attributes;
  } catch {
    return undefined;
  }
}
