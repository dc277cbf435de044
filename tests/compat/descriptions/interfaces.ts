/** A difference that is intended, and the test that shows it. */
export interface Difference {
  readonly what: string;
  readonly why: string;
  /** A test's file in this repository. */
  readonly shownBy: string;
}

const edges = "packages/server/src/edges";
const resources = `${edges}/rest-v2/resources.test.ts`;
const serverless = `${edges}/rest-v2/serverless.test.ts`;
const v2Description = "tests/compat/descriptions/v2.test.ts";

/** What differs on purpose for every client of an interface, beside the fields that walks over the public descriptions name. */
export const interfaceDifferences: Readonly<Record<string, readonly Difference[]>> = {
  "The queue": [
    {
      what: "`/v2/…/stream` answers a bare array, `/sdk/v2/…/stream` an object with `status` and `stream`",
      why: "the public documentation has the array, and every public client reads the object",
      shownBy: "tests/compat/python-worker.test.ts",
    },
    {
      what: "`wait` beyond its bounds is clamped, not refused",
      why: "clients ask for more than the documented 30 s",
      shownBy: `${edges}/queue/jobs.test.ts`,
    },
    {
      what: "a cancelled job is not retried",
      why: "the contract retries FAILED and TIMED_OUT jobs alone",
      shownBy: "tests/compat/mcp.test.ts",
    },
  ],
  "Every management interface": [
    {
      what: "under `/v1` and `/graphql` an endpoint is deleted only when its worker counts are 0; under `/sdk`, and over REST v2, they are set to 0 first",
      why: "the contract refuses it, and public clients send no such change before",
      shownBy: "tests/compat/bodies.test.ts",
    },
    {
      what: "prices and amounts are 0 or null until an admin sets prices",
      why: "machines here are their owner's",
      shownBy: `${edges}/rest-v1/billing.test.ts`,
    },
    {
      what: "`cloudType`, `interruptible`, `globalNetworking` and `supportPublicIp` of a pod are kept and shown, and change nothing",
      why: "there is one kind of host here, and its own network",
      shownBy: "packages/server/src/operations/pods/pods.test.ts",
    },
    {
      what: "minimums of bandwidth and disk (`minDownloadMbps`, `minUploadMbps`, `minDiskBandwidthMBps`; `minDownload`, `minUpload`, `minDisk`) are ignored, and named in `x-millrace-ignored`",
      why: "hosts do not measure them",
      shownBy: "packages/server/src/operations/pods/pods-machine.test.ts",
    },
    {
      what: "a start script is refused",
      why: "it would not run: the command belongs into the start command",
      shownBy: `${edges}/graphql/clients.test.ts`,
    },
  ],
  "REST v2": [
    {
      what: "`scaling.queueDelay` is a whole number of seconds",
      why: "a rounded fraction would not be what was sent",
      shownBy: serverless,
    },
    {
      what: "a LOAD_BALANCER endpoint may use QUEUE_DELAY",
      why: "v1 and GraphQL have it as the default of both types, and one rule stands for all three",
      shownBy: serverless,
    },
    {
      what: "`workers.idleTimeout` is taken and shown with REQUEST_COUNT, too",
      why: "an idle worker stays for that time under either scaler",
      shownBy: serverless,
    },
    {
      what: "volumes of the type HIGH_PERFORMANCE are refused",
      why: "there is one kind of storage, the hosts'",
      shownBy: resources,
    },
    {
      what: "clusters, global volumes, builds and delegations: the lists are empty, and making one is refused",
      why: "they exist only at the hosted service",
      shownBy: v2Description,
    },
    {
      what: "a valid key without permission gets 403, but over v1, GraphQL and the queue 401",
      why: "the contract has 401, and v2's clients expect 403",
      shownBy: serverless,
    },
    {
      what: "a user has a number of requests in each minute",
      why: "v2's clients wait by the headers that tell it; v1 and GraphQL have no limit, as the contract leaves them",
      shownBy: `${edges}/rest-v2/request-quota.test.ts`,
    },
  ],
};
