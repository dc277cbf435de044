import type { LogLine } from "@millrace/api";
import { eventsOf } from "@millrace/api/client";
import { shortName } from "@millrace/api/words";
import { useEffect, useRef, useState } from "react";
import { client } from "../../session.js";
import { Problem } from "../problem.js";
import { Rows } from "../rows.js";
import { useVisible } from "../use-visible.js";
import { whyOf } from "../why.js";

/** How many of the last lines are shown: the next more each time that older ones are asked for. */
const tails = [500, 2_000, 10_000] as const;
const againMs = 2_000;

/** What workers print, as it comes. `path` is a log's route with its query, without its length. */
export function Log({ path, label, empty }: { readonly path: string; readonly label: string; readonly empty: string }) {
  const [tail, setTail] = useState<number>(tails[0]);
  const { lines, isOpening, trouble, again } = useLog(`${path}&tail=${tail}`, tail);
  const longer = tails.find((each) => each > tail);
  const room = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs because there are new lines
  useEffect(() => {
    if (isAtEnd.current) room.current?.scrollTo({ top: room.current.scrollHeight });
  }, [lines]);
  if (isOpening) return <Rows columns={1} rows={3} />;
  if (trouble && lines.length === 0) return <Problem what={label} error={trouble} again={again} />;
  return (
    <>
      {trouble && (
        <p role="status" className="note">
          Not live: {whyOf(trouble)}
        </p>
      )}
      {lines.length >= tail && (
        <p className="note buttons">
          The last {tail.toLocaleString("en")} lines are shown
          {longer ? "." : ", which is the most. A job's page has its own."}
          {longer && (
            <button type="button" className="small" onClick={() => setTail(longer)}>
              Older lines
            </button>
          )}
        </p>
      )}
      <section
        className="log"
        ref={room}
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          isAtEnd.current = scrollTop + clientHeight > scrollHeight - 24;
        }}
      >
        {lines.length === 0 && <p className="note">{empty}</p>}
        {lines.map(({ at, workerId, stream, text, message }, n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two lines may be the same in everything
          <div key={`${at} ${n}`} className={stream === "stderr" ? "line err" : "line"}>
            <time dateTime={at}>{new Date(at).toLocaleTimeString()}</time>
            <span className="who" title={workerId}>
              {shortName(workerId)}
            </span>
            <span className="said">{message ?? text}</span>
          </div>
        ))}
      </section>
    </>
  );
}

/** The last lines of a log, and how its stream is: a broken one is asked for again by itself once it has been open. */
function useLog(path: string, linesMax: number) {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [trouble, setTrouble] = useState<Error>();
  const [isOpening, setOpening] = useState(true);
  const [tries, setTries] = useState(0);
  const isVisible = useVisible();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another try reads it from its beginning
  useEffect(() => {
    const over = new AbortController();
    setLines([]);
    setTrouble(undefined);
    setOpening(true);
    const tell = (said: Error | undefined) => {
      if (over.signal.aborted) return;
      setOpening(false);
      setTrouble(said);
    };
    const add = (more: readonly LogLine[]) => {
      if (!over.signal.aborted) setLines((before) => [...before, ...more].slice(-linesMax));
    };
    // a browser has six connections for all its tabs
    if (isVisible) void (/[?&]follow=true/.test(path) ? follow : readOnce)(path, over.signal, tell, add);
    return () => over.abort();
  }, [path, linesMax, tries, isVisible]);
  return { lines, isOpening, trouble, again: () => setTries(tries + 1) };
}

/** Reads a log to which nothing will be added. */
async function readOnce(
  path: string,
  over: AbortSignal,
  tell: (trouble: Error | undefined) => void,
  add: (lines: readonly LogLine[]) => void,
): Promise<void> {
  try {
    const reply = await client().open(path, { accept: "application/x-ndjson" }, over);
    const lines = (await reply.text()).split("\n").filter((line) => line !== "");
    tell(undefined);
    add(lines.map((line) => JSON.parse(line) as LogLine));
  } catch (error) {
    tell(error as Error);
  }
}

async function follow(
  path: string,
  over: AbortSignal,
  tell: (trouble: Error | undefined) => void,
  add: (lines: readonly LogLine[]) => void,
): Promise<void> {
  let lastId: string | undefined;
  let wasOpen = false;
  while (!over.aborted) {
    try {
      const reply = await client().open(path, lastId === undefined ? {} : { "last-event-id": lastId }, over);
      wasOpen = true;
      tell(undefined);
      for await (const events of eventsOf(reply, over)) {
        const lines = events.filter(({ event }) => event === "line");
        lastId = events.findLast(({ id }) => id !== undefined)?.id ?? lastId;
        if (lines.length > 0) add(lines.map(({ data }) => JSON.parse(data) as LogLine));
        if (events.some(({ event }) => event === "end")) return;
      }
    } catch (error) {
      tell(error as Error);
      if (!wasOpen) return;
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}
