import type { NewsItems } from "@millrace/api";
import type { QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { client } from "./session.js";

/** How the stream of changes is: `asking` while it is broken and the pages ask by themselves. */
export type Stream = "live" | "connecting" | "asking";

const againMs = 3_000;

/** Which queries show what an event names. */
const shownBy: Readonly<Record<string, readonly string[]>> = {
  jobs: ["health", "requests", "job"],
  workers: ["health", "workers"],
  endpoint: ["endpoint"],
};

/** Follows the stream of changes as long as the page is open, and marks what it names as old. */
export function useNews(queries: QueryClient): Stream {
  const [stream, setStream] = useState<Stream>("connecting");
  useEffect(() => {
    const over = new AbortController();
    void follow(queries, setStream, over.signal);
    return () => over.abort();
  }, [queries]);
  return stream;
}

async function follow(queries: QueryClient, tell: (stream: Stream) => void, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    try {
      const reply = await client().open("/v1/events");
      tell("live");
      void queries.invalidateQueries(); // what changed while nobody listened
      for await (const items of newsOf(reply, over)) {
        const old = new Map(
          items.map(({ endpointId, what }) => [endpointId, what.flatMap((each) => shownBy[each] ?? [])]),
        );
        const isOld = ([noun, id]: readonly unknown[]) =>
          noun === "endpoints" || items.length === 0 || old.get(id as string)?.includes(noun as string) === true;
        void queries.invalidateQueries({ predicate: ({ queryKey }) => isOld(queryKey) });
      }
    } catch {
      // a new stream is asked for below
    }
    if (over.aborted) return;
    tell("asking");
    void queries.invalidateQueries();
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

async function* newsOf(reply: Response, over: AbortSignal): AsyncGenerator<NewsItems> {
  const reader = (reply.body as ReadableStream<BufferSource>).pipeThrough(new TextDecoderStream()).getReader();
  over.addEventListener("abort", () => void reader.cancel());
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").find((line) => line.startsWith("data: "));
      if (event.startsWith("event: missed")) yield [];
      else if (data) yield JSON.parse(data.slice("data: ".length)) as NewsItems;
    }
  }
}
