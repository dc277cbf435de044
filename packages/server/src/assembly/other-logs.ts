import { mayCall } from "../domain/hosts/server.js";
import { limits } from "../limits/index.js";
import { type Marks, passedOn } from "../operations/access/server-marks.js";
import type { LogParts } from "../operations/logs/read-logs.js";
import type { Needs } from "../operations/needs.js";
import type { LogQuery, Provider } from "../provider.js";
import { type LogKeeper, logsFrom } from "../providers/other-servers/logs.js";

type Reading = Pick<LogParts, "logs" | "readsLogs">;
/** Reads a worker's log where it is kept, or a part of it. */
type Copy = (query: LogQuery) => ReturnType<Provider["logs"]>;

/**
 * Logs wherever they are kept: those of this server's workers are read here, all others at the server of their host. Of
 * a worker that has ended in a cluster each server has what it kept while the pod was there, so all of them are asked.
 */
export function logsOfAll(
  { registry, clock, here }: Needs<"registry" | "clock" | "here">,
  logs: Provider["logs"],
  marks: Marks,
): Reading {
  const keepersOf = (ofHostNo: number): LogKeeper[] =>
    registry.servers.flatMap(({ no, hostNo, address, clusters = [], seenAt }) => {
      const us = here.server;
      const isAlive = seenAt > clock.now() - limits.leaseMs;
      const isKeeper = hostNo === ofHostNo || clusters.some((cluster) => cluster.no === ofHostNo);
      if (!us || no === us.no || !isKeeper || !address || !isAlive || !mayCall(address, us.address)) return [];
      const mark = (target: string, url: string) => ({ [passedOn]: marks.make(no, { target, method: "GET", url }) });
      return [{ host: address.host, port: address.port, mark }];
    });

  async function* read(...[workerId, handle, query]: Parameters<Provider["logs"]>) {
    const row = registry.worker(workerId)?.row;
    const isReadHere = !row || here.readsLogs(row.hostNo);
    const isLeft = row?.endedAt !== undefined && here.clusters.some(({ no }) => no === row.hostNo);
    const copies: Copy[] = [
      ...(isReadHere ? [(asked: LogQuery) => logs(workerId, handle, asked)] : []),
      ...(row && (!isReadHere || isLeft) ? keepersOf(row.hostNo) : []).map(
        (keeper) => (asked: LogQuery) => logsFrom(keeper, workerId, asked),
      ),
    ];
    yield* (await longestOf(copies, query.signal))(query);
  }
  return { logs: read, readsLogs: (hostNo) => here.readsLogs(hostNo) || keepersOf(hostNo).length > 0 };
}

/** The copy with the latest last line, or the first of those: a server may have stopped before the worker's end. */
async function longestOf(copies: readonly Copy[], signal: AbortSignal): Promise<Copy> {
  const [first] = copies;
  if (!first) throw new Error("the server that keeps it does not answer");
  if (copies.length === 1) return first;
  const ends = await Promise.allSettled(copies.map((copy) => lastUs(copy, signal)));
  const times = ends.map((end) => (end.status === "fulfilled" ? end.value : 0));
  const latest = Math.max(...times);
  const failed = ends.find((end) => end.status === "rejected");
  if (latest === 0 && failed) throw failed.reason; // there may be lines
  return copies[times.indexOf(latest)] as Copy;
}

/** The time of a copy's last line; 0 if there is none. */
async function lastUs(copy: Copy, signal: AbortSignal): Promise<number> {
  let last = 0;
  for await (const lines of copy({ tail: 1, signal })) last = lines.at(-1)?.atUs ?? last;
  return last;
}
