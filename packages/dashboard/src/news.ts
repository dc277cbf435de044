import type { NewsItems, StatusBody } from "@millrace/api";
import { ApiError, eventsOf } from "@millrace/api/client";
import type { Query, QueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useVisible } from "./parts/use-visible.js";
import { endpointsQuery, isFinal, readSeen } from "./queries.js";
import { client, signOut } from "./session.js";

/** How the stream of changes is: `asking` while it is broken and the pages ask by themselves. */
export type Stream = "live" | "connecting" | "asking";

const againMsMin = 3_000;
const againMsMax = 30_000;
/** How often what is shown is read again at most, however much changes. */
const restMs = 1_000;
/** So many endpoints are read one by one; if more have changed, the list is read as a whole. */
const readAlone = 8;

/** Which queries show what an event names. */
const shownBy: Readonly<Record<string, readonly string[]>> = {
  jobs: ["health", "requests", "job", "story", "timings", "deliveries", "delivery"],
  workers: ["health", "workers", "scaling", "releases", "worker", "hosts", "cold-starts"],
  endpoint: ["endpoint", "releases"],
  webhooks: ["receivers", "deliveries", "delivery"],
};
/** Queries that are not named by an endpoint. */
const ofAnyEndpoint = new Set(["worker", "hosts", "receivers", "deliveries", "delivery"]);
const live = new Set(["endpoints", ...Object.values(shownBy).flat()]);

/**
 * Follows the stream of changes while the page can be seen, and reads anew what it names. A hidden tab follows nothing:
 * a browser has six connections to a server for all its tabs.
 */
export function useNews(queries: QueryClient): Stream {
  const [stream, setStream] = useState<Stream>("connecting");
  const isVisible = useVisible();
  useEffect(() => {
    if (!isVisible) return;
    const over = new AbortController();
    const reader = new Reader(queries);
    void follow(queries, reader, setStream, over.signal);
    return () => {
      over.abort();
      reader.end();
    };
  }, [queries, isVisible]);
  return stream;
}

async function follow(
  queries: QueryClient,
  reader: Reader,
  tell: (stream: Stream) => void,
  over: AbortSignal,
): Promise<void> {
  for (let againMs = againMsMin; !over.aborted; againMs = Math.min(againMsMax, 2 * againMs)) {
    try {
      const reply = await client().open("/v1/events", {}, over);
      againMs = againMsMin;
      tell("live");
      reader.all(); // what changed while nobody listened
      for await (const events of eventsOf(reply, over)) {
        if (events.some(({ event }) => event === "missed")) reader.all();
        const changed = events.filter(({ event }) => event === "changed");
        reader.changed(changed.flatMap(({ data }) => JSON.parse(data) as NewsItems));
      }
    } catch (error) {
      if (!over.aborted && error instanceof ApiError && error.status === 401) return leave(queries);
      // otherwise a new stream is asked for below
    }
    if (over.aborted) return;
    tell("asking");
    reader.all();
    await new Promise((resolve) => setTimeout(resolve, againMs));
  }
}

/** The key was revoked, or has expired. */
function leave(queries: QueryClient): void {
  signOut();
  queries.clear();
  location.assign(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
}

/**
 * Reads what is shown again once it has changed, each at most once in a while, and never again before the reply is
 * here: on a slow line the page would otherwise only ask, and show nothing.
 */
class Reader {
  readonly #queries: QueryClient;
  readonly #old = new Set<string>();
  readonly #oldEndpoints = new Set<string>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(queries: QueryClient) {
    this.#queries = queries;
    this.#timer = setInterval(() => this.#read(), restMs);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  changed(items: NewsItems): void {
    const nouns = new Map(
      items.map(({ endpointId, what }) => [endpointId, what.flatMap((each) => shownBy[each] ?? [])]),
    );
    const isNamed = ({ queryKey: [noun, id] }: Query) =>
      ofAnyEndpoint.has(noun as string)
        ? [...nouns.values()].some((each) => each.includes(noun as string))
        : nouns.get(id as string | undefined)?.includes(noun as string) === true;
    this.#mark((query) => isNamed(query) && !isOver(query));
    for (const id of nouns.keys()) if (id !== undefined) this.#oldEndpoints.add(id);
  }

  /** Everything that changes by itself. */
  all(): void {
    this.#mark((query) => live.has(query.queryKey[0] as string) && !isOver(query));
    this.#mark(isPods);
  }

  #mark(isOld: (query: Query) => boolean): void {
    for (const query of this.#queries.getQueryCache().findAll({ type: "active", predicate: isOld }))
      this.#old.add(query.queryHash);
  }

  #read(): void {
    this.#readEndpoints();
    for (const hash of this.#old) {
      const query = this.#queries.getQueryCache().get(hash);
      if (query?.state.fetchStatus === "fetching") continue; // what it brings may be older than the change
      this.#old.delete(hash);
      if (query) void this.#queries.invalidateQueries({ queryKey: query.queryKey, exact: true });
    }
  }

  /** Keeps the list of endpoints as it is on the server, without reading all of it whenever one has changed. */
  #readEndpoints(): void {
    const ids = [...this.#oldEndpoints];
    this.#oldEndpoints.clear();
    const known = this.#queries.getQueryData(endpointsQuery.queryKey);
    if (!known || ids.length === 0) return;
    const isKnown = new Set(known.map(({ id }) => id));
    const own = ids.filter((id) => isKnown.has(id));
    if (own.length < ids.length) this.#mark(isPods); // or an endpoint that is new
    if (own.length < ids.length || own.length > readAlone) this.#mark(({ queryKey: [noun] }) => noun === "endpoints");
    else for (const id of own) void this.#readOne(id);
  }

  async #readOne(id: string): Promise<void> {
    const seen = await readSeen(id).catch(() => undefined);
    if (!seen) this.#mark(({ queryKey: [noun] }) => noun === "endpoints");
    else
      this.#queries.setQueryData(endpointsQuery.queryKey, (all) => all?.map((each) => (each.id === id ? seen : each)));
  }
}

const isPods = ({ queryKey: [noun, path] }: Query) => noun === "list" && path === "/v1/pods";
/**
 * What is not read again: a job that has ended (its story is, and tells of a retry), and a list of which older pages have
 * been read, so that nothing jumps.
 */
function isOver({ queryKey: [noun], state: { data } }: Query): boolean {
  if (data === undefined) return false;
  if (noun === "job") return isFinal((data as StatusBody).status);
  return isPaged(data) && data.pages.length > 1;
}
const isPaged = (data: unknown): data is { readonly pages: readonly unknown[] } =>
  typeof data === "object" && data !== null && "pages" in data;
