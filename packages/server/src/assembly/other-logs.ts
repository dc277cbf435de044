import { mayCall } from "../domain/hosts/server.js";
import type { LogLine } from "../domain/workers/log-line.js";
import { limits } from "../limits/index.js";
import { type Marks, passedOn } from "../operations/access/server-marks.js";
import type { LogParts } from "../operations/logs/read-logs.js";
import type { Needs } from "../operations/needs.js";
import type { Provider } from "../provider.js";
import { type LogKeeper, logsFrom } from "../providers/other-servers/logs.js";

type Reading = Pick<LogParts, "logs" | "readsLogs">;

/**
 * Logs wherever they are kept: those of this server's workers are read here, all others at the server of their host. Of
 * a worker that has ended in a cluster only the server that tended it then has the log, so each of them is asked.
 */
export function logsOfAll(
  { registry, clock, here }: Needs<"registry" | "clock" | "here">,
  logs: Provider["logs"],
  marks: Marks,
): Reading {
  const others = (): LogKeeper[] =>
    registry.servers.flatMap(({ no, hostNo, address, seenAt }) => {
      const us = here.server;
      const isAlive = seenAt > clock.now() - limits.leaseMs;
      if (!us || no === us.no || hostNo === undefined || !address || !isAlive || !mayCall(address, us.address))
        return [];
      const mark = (target: string, url: string) => ({ [passedOn]: marks.make(no, { target, method: "GET", url }) });
      return [{ hostNo, host: address.host, port: address.port, mark }];
    });
  const keeperOf = (hostNo: number) => others().find((other) => other.hostNo === hostNo);

  async function* read(...[workerId, handle, query]: Asked): AsyncGenerator<readonly LogLine[]> {
    const row = registry.worker(workerId)?.row;
    const keeper = row && !here.readsLogs(row.hostNo) ? keeperOf(row.hostNo) : undefined;
    if (keeper) {
      yield* logsFrom(keeper, workerId, query);
      return;
    }
    let isEmpty = true;
    for await (const lines of logs(workerId, handle, query)) {
      isEmpty = false;
      yield lines;
    }
    const mayBeElsewhere = row?.endedAt !== undefined && here.clusters.some(({ no }) => no === row.hostNo);
    if (!isEmpty || !mayBeElsewhere) return;
    for (const other of others()) {
      try {
        for await (const lines of logsFrom(other, workerId, query)) {
          isEmpty = false;
          yield lines;
        }
      } catch (error) {
        if (!isEmpty || query.signal.aborted) throw error; // of a server that has none of it nothing is missing
      }
      if (!isEmpty) return;
    }
  }
  return { logs: read, readsLogs: (hostNo) => here.readsLogs(hostNo) || keeperOf(hostNo) !== undefined };
}

type Asked = Parameters<Provider["logs"]>;
