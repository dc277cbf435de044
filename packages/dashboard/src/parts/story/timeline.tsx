import type { JobStory, StatusBody, Worker } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { workerQuery } from "../../queries.js";
import { span } from "../times.js";
import { phasesOf } from "./phases.js";

interface Part {
  readonly kind: "waited" | "started" | "ran";
  readonly words: string;
  readonly from: number;
  readonly until: number;
}

/** A job from its submission to its end, to scale: what it waited for, the start of its worker, its run. */
export function Timeline({ job, story }: { readonly job: StatusBody; readonly story: JobStory }) {
  const worker = useQuery({ ...workerQuery(story.workerId ?? ""), enabled: story.workerId !== undefined });
  const parts = partsOf(job, story, worker.data);
  const from = Date.parse(story.queuedAt);
  const until = Math.max(from + 1, ...parts.map((part) => part.until));
  const share = (ms: number) => (100 * ms) / (until - from);
  return (
    <figure className="timeline">
      <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {parts.map((part) => (
          <rect
            key={`${part.kind} ${part.words} ${part.from}`}
            className={part.kind}
            x={share(part.from - from)}
            width={Math.max(0.3, share(part.until - part.from))}
            height="6"
          />
        ))}
      </svg>
      <ol>
        {parts.map((part) => (
          <li key={`${part.kind} ${part.words} ${part.from}`} className={part.kind}>
            {part.words} <b>{span(part.until - part.from)}</b>
          </li>
        ))}
      </ol>
      {story.happened.length > 0 && (
        <ul className="happened">
          {story.happened.map(({ at, event, note }) => (
            <li key={`${at} ${event}`}>
              <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time> {happenings[event] ?? event}
              {note && `: ${note}`}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}

const happenings: Readonly<Record<string, string>> = {
  giveBack: "given back to the queue",
  fail: "failed",
  timeOut: "ran too long",
  cancel: "cancelled",
  retry: "retried",
};

function partsOf(job: StatusBody, story: JobStory, worker: Worker | undefined): Part[] {
  const queuedAt = Date.parse(story.queuedAt);
  const now = queuedAt + job.delayTime + job.executionTime;
  const takenAt = story.takenAt === undefined || job.status === "IN_QUEUE" ? undefined : Date.parse(story.takenAt);
  const endAt = story.finishedAt === undefined ? now : Date.parse(story.finishedAt);
  const parts = waits(queuedAt, takenAt ?? endAt, worker);
  if (takenAt !== undefined) {
    const words = job.status === "IN_PROGRESS" ? "running for" : "ran";
    parts.push({ kind: "ran", words, from: takenAt, until: Math.max(takenAt, endAt) });
  }
  return parts;
}

/** The wait: before its worker was asked for, each step of the worker's start, and after it was ready. */
function waits(from: number, until: number, worker: Worker | undefined): Part[] {
  const asked = worker?.timeline[0]?.at;
  const startsAt = asked === undefined ? undefined : Date.parse(asked);
  if (!worker || startsAt === undefined || startsAt + (worker.coldStart.totalMs ?? 0) <= from)
    return [{ kind: "waited", words: "waited", from, until }];
  const parts: Part[] = [];
  let at = startsAt;
  if (at > from) parts.push({ kind: "waited", words: "waited before its worker started", from, until: at });
  for (const { name, ms } of phasesOf(worker)) {
    const [begin, end] = [Math.max(at, from), Math.min(at + ms, until)];
    if (end > begin) parts.push({ kind: "started", words: `start: ${name}`, from: begin, until: end });
    at += ms;
  }
  if (until > at) parts.push({ kind: "waited", words: "waited for its turn", from: Math.max(at, from), until });
  return parts;
}
