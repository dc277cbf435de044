import { containers } from "./containers.js";
import { gateway } from "./gateway.js";
import { graphql } from "./graphql.js";
import { host } from "./host.js";
import { http } from "./http.js";
import { jobs } from "./jobs.js";
import { json } from "./json.js";
import { logs } from "./logs.js";
import { loops } from "./loops.js";
import { management } from "./management.js";
import { contract } from "./public-contract.js";
import { replies } from "./replies.js";
import { store } from "./store.js";
import { webhooks } from "./webhooks.js";
import { workers } from "./workers.js";

export { countries, dataCenters } from "./places.js";

/** Every bound of the system, its unit in its name. Durations are milliseconds. */
export const limits = {
  ...contract,
  ...jobs,
  ...json,
  ...workers,
  ...management,
  ...logs,
  ...containers,
  ...store,
  ...webhooks,
  ...http,
  ...replies,
  ...graphql,
  ...gateway,
  ...host,
  ...loops,
} as const;

const relations: [boolean, string][] = [
  [limits.beatMs * 3 < limits.leaseMs, "an owner may miss two beats"],
  [limits.gateConnectMs + limits.clockSkewMsMax < limits.gateMarkMs, "a mark holds until its request arrives"],
  [limits.pingMs * 3 <= limits.workerSilenceMs, "a worker may miss two pings"],
  [limits.takeHoldMs < limits.workerSilenceMs, "a parked poll is renewed before its worker counts as silent"],
  [
    limits.takeHoldMs + limits.workerSilenceMs < limits.idlePingsMs,
    "a parked poll need not be told of while it is held",
  ],
  [limits.busyTakeHoldMs * 5 <= limits.executionTimeoutMsMin, "a result that waits for a take's answer is in time"],
  [limits.pingMs < limits.executionTimeoutMsMin, "a ping tells of a job that has not begun before its time is over"],
  [limits.allWorkersReadMs < limits.endedWorkersReadMs, "a worker's end is read"],
  [limits.runsyncBytesMax <= limits.outputBytesHard, "what can be submitted can be returned"],
  [limits.readerStallWantedMs * 2 < limits.lentWaitMs, "a stuck reader gives its share back before others give up"],
  [limits.lentWriteBytes <= limits.lentBytesPerTurn, "a turn has room for one write"],
  [limits.lentOwnerShare < 1, "one owner leaves room for others"],
  [2 * limits.managementBytesMax < limits.replyBytesMax, "a reply holds an endpoint with its template"],
  [limits.graphqlSmallBytes < limits.replyBytesMax, "a small answer fits what every management request is lent"],
  [3 * limits.graphqlBytesMax < limits.graphqlLargeBytes, "a large answer and its entries fit what it is lent"],
  [
    limits.takeBytesMax + limits.runsyncBytesMax <= limits.lentOwnerShare * limits.lentInputBytesMax,
    "an owner's workers can be handed a whole turn",
  ],
  [limits.takeLentWaitMs < limits.absentAfterMs, "a job whose input waits for room is not yet missed by pings"],
  [limits.connectionsMax * limits.bodyBytesFree <= limits.bodiesBytesMax, "what is not counted of bodies is bounded"],
  [limits.openaiBytesMax <= limits.bodiesOwnerShare * limits.bodiesBytesMax, "one owner may send the largest body"],
  [limits.outputBytesHard <= limits.bodiesOwnerShare * limits.wordsBytesMax, "and its worker the largest result"],
  [limits.groupBytesMax <= limits.queuedBytesMax, "a group fits the queue of calls"],
  [limits.largeCallBytes <= limits.groupBytesMax, "a group holds several large calls"],
  [2 * limits.storedPieceBytes <= limits.groupBytesMax, "a piece of a large text fits the half of a group"],
  [limits.logLineBytesMax * 4 < limits.logBlockBytes, "a line fits what is read of a log at a time"],
  [limits.logFlushMs + limits.logPollMs <= limits.logHoldMs, "a line that is held has seen the older ones come"],
  [limits.webhookSilentMs < limits.webhookTimeoutMs, "a host that lets a call time out is silent"],
  [limits.webhookRetryMs < limits.webhookSilenceKeptMs, "a silent host is still known when it is called again"],
  [limits.handlerPatienceMsMax < limits.crashPauseMsMax, "a repaired handler is tried before the longest pause ends"],
  [limits.takeBatchMax <= limits.logSecretsMax, "the secrets of all jobs of a batch are masked"],
  [
    limits.chunkBytesMax + limits.chunkMetricsBytesMax <= limits.streamReplyBytesMax,
    "a reply holds at least one chunk with its metrics",
  ],
  [limits.jsonThreadBytes <= limits.jsonBytesPerTurn, "a turn has room for one body that need not go to the thread"],
];
for (const [holds, sentence] of relations) if (!holds) throw new Error(`limits: ${sentence}`);
