import type { NewsItems } from "@millrace/api";
import { eventsOf } from "@millrace/api/client";
import type { QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { endpointsQuery, readSeen } from "./queries.js";
import { client } from "./session.js";

/** How the stream of changes is: `asking` while it is broken and the pages ask by themselves. */
export type Stream = "live" | "connecting" | "asking";

const againMs = 3_000;
/** So many endpoints are read one by one; if more have changed, the list is read as a whole, at most this often. */
const readAlone = 8;
const listRestMs = 2_000;

/** Which queries show what an event names. */
const shownBy: Readonly<Record<string, readonly string[]>> = {
  jobs: ["health", "requests", "job", "story", "timings"],
  workers: ["health", "workers", "scaling", "releases", "worker", "hosts"],
  endpoint: ["endpoint", "releases"],
};

/** Follows the stream of changes as long as the page is open, and reads anew what it names. */
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
  const list = new ListKeeper(queries);
  while (!over.aborted) {
    try {
      const reply = await client().open("/v1/events");
      tell("live");
      void queries.invalidateQueries(); // what changed while nobody listened
      for await (const events of eventsOf(reply, over)) {
        if (events.some(({ event }) => event === "missed")) list.changedAll();
        const items = events
          .filter(({ event }) => event === "changed")
          .flatMap(({ data }) => JSON.parse(data) as NewsItems);
        if (items.length > 0) readAnew(queries, list, items);
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

function readAnew(queries: QueryClient, list: ListKeeper, items: NewsItems): void {
  const old = new Map<string, Set<string>>();
  for (const { endpointId, what } of items) {
    const nouns = old.get(endpointId) ?? new Set();
    for (const each of what) for (const noun of shownBy[each] ?? []) nouns.add(noun);
    old.set(endpointId, nouns);
  }
  void queries.invalidateQueries({
    predicate: ({ queryKey: [noun, id] }) => {
      // these are not keyed by an endpoint
      if (noun === "worker" || noun === "hosts") return [...old.values()].some((nouns) => nouns.has(noun as string));
      return old.get(id as string)?.has(noun as string) === true;
    },
  });
  list.changed([...old.keys()]);
}

/** Keeps the list of endpoints as it is on the server, without reading all of it whenever one has changed. */
class ListKeeper {
  readonly #queries: QueryClient;
  #isResting = false;
  #isAll = false;

  constructor(queries: QueryClient) {
    this.#queries = queries;
  }

  changed(ids: readonly string[]): void {
    const known = this.#queries.getQueryData(endpointsQuery.queryKey);
    if (!known) return;
    const isKnown = new Set(known.map(({ id }) => id));
    const own = ids.filter((id) => isKnown.has(id));
    if (own.length < ids.length || own.length > readAlone) this.#readAll();
    else for (const id of own) void this.#readOne(id);
  }

  async #readOne(id: string): Promise<void> {
    const seen = await readSeen(id).catch(() => undefined);
    if (!seen) this.#readAll();
    else
      this.#queries.setQueryData(endpointsQuery.queryKey, (all) => all?.map((each) => (each.id === id ? seen : each)));
  }

  /** Reads everything that is shown, at most once in a while. */
  changedAll(): void {
    this.#isAll = true;
    this.#readAll();
  }

  #readAll(): void {
    if (this.#isResting) return;
    this.#isResting = true;
    setTimeout(() => {
      this.#isResting = false;
      void this.#queries.invalidateQueries(this.#isAll ? {} : { queryKey: endpointsQuery.queryKey });
      this.#isAll = false;
    }, listRestMs);
  }
}
