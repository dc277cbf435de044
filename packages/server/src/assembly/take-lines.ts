import { topics } from "../bell.js";
import { TakeLine } from "../lines/take-line.js";
import { precedenceOf } from "../operations/jobs/take-jobs.js";
import type { Needs, Parts } from "../operations/needs.js";

/** A line of polling workers for each endpoint, rung by its queue. */
export function takeLines(
  lines: Map<number, TakeLine>,
  { jobs, registry, bell, clock, emit }: Needs<"jobs" | "registry" | "bell" | "clock" | "emit">,
): Parts["line"] {
  const deaf = new Map<number, () => void>();
  registry.onForget((no) => {
    deaf.get(no)?.();
    deaf.delete(no);
    lines.delete(no);
  });
  return (endpointNo) => {
    let line = lines.get(endpointNo);
    if (line) return line;
    const topic = topics.queue(endpointNo);
    line = new TakeLine({
      clock,
      take: (asks) => jobs.take({ endpointNo, asks, now: clock.now() }),
      busyAt: (workerNo) => precedenceOf(registry.workerByNo(workerNo)),
      mayTake(workerNo) {
        const row = registry.workerByNo(workerNo)?.row;
        return row !== undefined && row.wanted === "running" && row.endedAt === undefined;
      },
      onError: (error) => emit({ type: "server.warning", message: "jobs could not be taken just now", error }),
      onLeft: () => bell.ringElsewhere(topic),
    });
    lines.set(endpointNo, line);
    const ringing = line;
    deaf.set(
      endpointNo,
      bell.on(topic, () => ringing.ring()),
    );
    return line;
  };
}
