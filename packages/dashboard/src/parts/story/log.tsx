import type { LogLine } from "@millrace/api";
import { eventsOf } from "@millrace/api/client";
import { shortName } from "@millrace/api/words";
import { useEffect, useRef, useState } from "react";
import { client } from "../../session.js";

const linesKept = 2_000;
const againMs = 2_000;

/** What workers print, as it comes. `path` is a log's route with its query. */
export function Log({ path, label, empty }: { readonly path: string; readonly label: string; readonly empty: string }) {
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [trouble, setTrouble] = useState<string>();
  const room = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const over = new AbortController();
    setLines([]);
    void follow(path, over.signal, setTrouble, (more) => setLines((before) => [...before, ...more].slice(-linesKept)));
    return () => over.abort();
  }, [path]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it runs because there are new lines
  useEffect(() => {
    if (isAtEnd.current) room.current?.scrollTo({ top: room.current.scrollHeight });
  }, [lines]);
  return (
    <>
      {trouble && <p className="note">{trouble}</p>}
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

async function follow(
  path: string,
  over: AbortSignal,
  tell: (trouble: string | undefined) => void,
  add: (lines: readonly LogLine[]) => void,
): Promise<void> {
  let lastId: string | undefined;
  while (!over.aborted) {
    try {
      const reply = await client().open(path, lastId === undefined ? {} : { "last-event-id": lastId });
      tell(undefined);
      for await (const events of eventsOf(reply, over)) {
        const lines = events.filter(({ event }) => event === "line");
        lastId = events.findLast(({ id }) => id !== undefined)?.id ?? lastId;
        if (lines.length > 0) add(lines.map(({ data }) => JSON.parse(data) as LogLine));
        if (events.some(({ event }) => event === "end")) return;
      }
    } catch (error) {
      if (!over.aborted) tell((error as Error).message);
    }
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}
