import type { StatusBody } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { isFinal, type JobPage, readStatus, requestsPath, requestsQuery } from "../../queries.js";
import { get } from "../../session.js";

const lookMs = 5_000;
const lookedAtMost = 10;

interface Known {
  readonly key: string;
  readonly jobs: readonly StatusBody[];
  readonly cursor: string | undefined;
}

/**
 * An endpoint's jobs, newest first: those that were read so far. New ones wait until they are asked for once older ones
 * have been read, so that nothing jumps.
 */
export function useRequests(endpointId: string, status: string | undefined) {
  const head = useQuery(requestsQuery(endpointId, status));
  const key = `${endpointId} ${status}`;
  const [kept, setKnown] = useState<Known>();
  const known = kept?.key === key ? kept : undefined;
  const isBusy = useRef(false);
  const fresh = known && head.data ? freshOf(known, head.data) : 0;
  const isReading = (known?.jobs.length ?? 0) > (head.data?.requests.length ?? 0);

  const { data } = head;
  useEffect(() => {
    if (!data) return;
    setKnown((before) => {
      const own = before?.key === key ? before : undefined;
      const isHeld = own !== undefined && own.jobs.length > data.requests.length && freshOf(own, data) > 0;
      return isHeld ? updated(own, data) : joined(own, data, key);
    });
  }, [data, key]);

  // the newest page is read again as it changes; of older jobs those that go on are looked at now and then
  const going = known?.jobs.slice(data?.requests.length ?? 0).filter(({ status: state }) => !isFinal(state)) ?? [];
  const goingIds = going
    .slice(0, lookedAtMost)
    .map(({ id }) => id)
    .join(" ");
  useEffect(() => {
    if (goingIds === "") return;
    const timer = setInterval(() => void look(), lookMs);
    async function look() {
      const read = goingIds.split(" ").map((id) => readStatus(endpointId, id).catch(() => undefined));
      const found = (await Promise.all(read)).filter((job) => job !== undefined);
      setKnown((before) => (before?.key === key ? updated(before, { requests: found }) : before));
    }
    return () => clearInterval(timer);
  }, [goingIds, endpointId, key]);

  async function loadMore() {
    const cursor = known?.cursor;
    if (!cursor || isBusy.current) return;
    isBusy.current = true;
    try {
      const page = await get<JobPage>(requestsPath(endpointId, status, cursor));
      setKnown((before) =>
        before?.key === key && before.cursor === cursor
          ? { ...before, jobs: unique([...before.jobs, ...page.requests]), cursor: page.nextCursor }
          : before,
      );
    } finally {
      isBusy.current = false;
    }
  }

  return {
    jobs: known?.jobs ?? head.data?.requests ?? [],
    error: head.error,
    isLoading: head.isPending,
    fresh: isReading ? fresh : 0,
    showFresh: () => head.data && setKnown((before) => joined(before, head.data, key)),
    hasMore: known?.cursor !== undefined,
    loadMore: () => void loadMore(),
    again: () => void head.refetch(),
  };
}

/** How many jobs of the newest page are not known yet. */
function freshOf({ jobs }: Known, { requests }: JobPage): number {
  const ids = new Set(jobs.map(({ id }) => id));
  return requests.filter(({ id }) => !ids.has(id)).length;
}

/** The known jobs as the newest page has them. */
function updated(known: Known, { requests }: JobPage): Known {
  const now = new Map(requests.map((job) => [job.id, job]));
  return { ...known, jobs: known.jobs.map((job) => now.get(job.id) ?? job) };
}

/** The newest page, and after it the older jobs that are known; those behind a gap are forgotten. */
function joined(known: Known | undefined, { requests, nextCursor }: JobPage, key: string): Known {
  const last = requests.at(-1)?.id;
  const at = known?.jobs.findIndex(({ id }) => id === last) ?? -1;
  if (!known || known.key !== key || at < 0) return { key, jobs: requests, cursor: nextCursor };
  return { key, jobs: unique([...requests, ...known.jobs.slice(at + 1)]), cursor: known.cursor };
}

const unique = (jobs: readonly StatusBody[]): StatusBody[] => [...new Map(jobs.map((job) => [job.id, job])).values()];
