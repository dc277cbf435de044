import { access } from "./access.js";
import { clusters } from "./clusters.js";
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
import { usage } from "./usage.js";
import { webhooks } from "./webhooks.js";
import { workers } from "./workers.js";

export { countries, cudaVersions, dataCenters } from "./locations.js";

/** Every bound of the system, with its unit in its name. Durations are in milliseconds. */
export const limits = {
  ...contract,
  ...jobs,
  ...json,
  ...workers,
  ...management,
  ...access,
  ...logs,
  ...clusters,
  ...containers,
  ...store,
  ...webhooks,
  ...http,
  ...replies,
  ...graphql,
  ...gateway,
  ...host,
  ...loops,
  ...usage,
} as const;

/** Bytes that are held for callers at the most: each of these is one budget for all of them. */
const heldBytes =
  limits.bodiesBytesMax +
  limits.wordsBytesMax +
  limits.queuedBytesMax +
  limits.lentBytesMax +
  limits.lentStreamBytesMax +
  limits.lentInputBytesMax +
  limits.webhookBytesMax +
  limits.openaiHeldCharsMax +
  limits.pipelinedBytesMax;

const relations: [boolean, string][] = [
  [limits.memoryBytesAtRest + heldBytes <= limits.memoryBytes, "a server's memory holds all budgets at once"],
  [2 * limits.wordLanes + 4 <= limits.writersMax, "no lane, grant or flush waits for a connection"],
  [limits.beatMs * 3 < limits.leaseMs, "an owner may miss two beats"],
  [limits.changesTrustedMs < limits.forgetMs, "changes are kept until every server has read them"],
  [limits.gateConnectMs + limits.clockSkewMsMax < limits.gateMarkMs, "a mark holds until its request arrives"],
  [limits.pingMs * 3 <= limits.workerSilenceMs, "a worker may miss two pings"],
  [limits.takeHoldMs < limits.workerSilenceMs, "a parked poll is renewed before its worker counts as silent"],
  [
    limits.takeHoldMs + limits.workerSilenceMs < limits.idlePingsMs,
    "a parked poll need not be reported while it is held",
  ],
  [limits.busyTakeHoldMs * 5 <= limits.executionTimeoutMsMin, "a result that waits for a take's reply is in time"],
  [limits.pingMs < limits.executionTimeoutMsMin, "a ping reveals a job that has not begun before it times out"],
  [limits.allWorkersReadMs < limits.endedWorkersReadMs, "a worker's end is not missed"],
  [limits.endedWorkersReadMs < limits.neverRanKeptMs, "a worker that was forgotten is not read again"],
  [limits.clusterLeftMs <= limits.neverRanKeptMs, "it is known which clusters workers have left"],
  [limits.runsyncBytesMax <= limits.outputBytesHard, "what can be submitted can be returned"],
  [limits.readerStallWantedMs * 2 < limits.lentWaitMs, "a stuck reader gives its share back before others give up"],
  [limits.lentWriteBytes <= limits.lentBytesPerTurn, "a turn has room for one write"],
  [limits.lentOwnerShare < 1, "one owner leaves room for others"],
  [2 * limits.managementBytesMax < limits.replyBytesMax, "a reply holds an endpoint with its template"],
  [limits.graphqlSmallBytes < limits.replyBytesMax, "a small reply fits what every management request is lent"],
  [3 * limits.graphqlBytesMax < limits.graphqlLargeBytes, "a large reply and its entries fit what it is lent"],
  [
    limits.takeBytesMax + limits.runsyncBytesMax <= limits.lentOwnerShare * limits.lentInputBytesMax,
    "an owner's workers can be given a whole turn's jobs",
  ],
  [
    limits.takeLentWaitMs < limits.absentAfterMs,
    "a job whose input waits for room does not yet count as missing from pings",
  ],
  [limits.connectionsMax * limits.bodyBytesFree <= limits.bodiesBytesMax, "the uncounted bytes of bodies are bounded"],
  [limits.openaiBytesMax <= limits.bodiesOwnerShare * limits.bodiesBytesMax, "one owner may send the largest body"],
  [
    limits.outputBytesHard <= limits.bodiesOwnerShare * limits.wordsBytesMax,
    "one owner's worker may send the largest result",
  ],
  [limits.usageTickMs < limits.usageMarksKeptMs, "a mark is moved before it is forgotten"],
  [limits.groupBytesMax <= limits.queuedBytesMax, "a group fits the queue of calls"],
  [limits.largeCallBytes <= limits.groupBytesMax, "a group holds several large calls"],
  [2 * limits.storedPieceBytes <= limits.groupBytesMax, "a piece of a large text fits in half a group"],
  [limits.logLineBytesMax * 4 < limits.logBlockBytes, "a line fits in a block read from a log"],
  [limits.logFlushMs + limits.logPollMs <= limits.logHoldMs, "a held line is shown after all older ones"],
  [limits.webhookSilentMs < limits.webhookTimeoutMs, "a host that lets a call time out is silent"],
  [limits.webhookRetryMs < limits.webhookSilenceKeptMs, "a silent host is still known when it is called again"],
  [limits.handlerPatienceMsMax < limits.crashPauseMsMax, "a repaired handler is tried before the longest pause ends"],
  [limits.takeBatchMax <= limits.logSecretsMax, "the secrets of all jobs of a batch are masked"],
  [
    limits.chunkBytesMax + limits.chunkMetricsBytesMax <= limits.streamReplyBytesMax,
    "a reply holds at least one chunk with its metrics",
  ],
  [
    limits.parsedBytesPerByte * limits.managementBytesMax <= limits.lentOwnerShare * limits.lentBytesMax,
    "an owner's budget has room for the largest management body",
  ],
];
for (const [holds, sentence] of relations) if (!holds) throw new Error(`limits: ${sentence}`);
