import type { ClientTable, Outcome } from "./client-table.js";

const all = (calls: readonly string[], outcome: Outcome = "works") =>
  Object.fromEntries(calls.map((call) => [call, outcome]));

const job = ["status", "output", "stream", "cancel"];
const ofJob = (name: string) => job.map((call) => `${name}.${call}`);

/** The calls of clients of the queue, and their outcomes. `tests/compat/queue-clients.test.ts` makes each call. */
export const queueCalls = {
  js: {
    client: "npm `runpod-sdk` 1.1.2",
    note: "Its option `baseUrl` is the server's address with `/sdk/v2`.",
    differences: {
      "`stream` needs `/sdk/v2`":
        "under `/v2` the reply is the bare array of the public documentation, which the client cannot read",
    },
    calls: all(["run", "runSync", "status", "statusSync", "stream", "cancel", "purgeQueue", "health"]),
  },
  python: {
    client: "PyPI `runpod` 1.12.0, its clients",
    note: "`RUNPOD_ENDPOINT_BASE_URL` is the server's address with `/sdk/v2`.",
    differences: {
      "`Job.stream` needs `/sdk/v2`":
        "under `/v2` the reply is the bare array of the public documentation, which the client cannot read",
    },
    calls: all([
      ...["Endpoint.run", "Endpoint.run_sync", "Endpoint.health", "Endpoint.purge_queue", ...ofJob("Job")],
      ...["AsyncioEndpoint.run", "AsyncioEndpoint.health", "AsyncioEndpoint.purge_queue", ...ofJob("AsyncioJob")],
    ]),
  },
  openAi: {
    client: "npm `openai` 7.57.0",
    note: "Its option `baseURL` is the server's address with `/v2/{endpoint}/openai/v1`; the worker is `examples/openai`.",
    calls: all([
      ...["models.list", "models.retrieve", "chat.completions.create", "chat.completions.create, streamed"],
      ...["completions.create", "completions.create, streamed"],
    ]),
  },
  aiSdk: {
    client: "npm `@runpod/ai-sdk-provider` 1.4.0",
    note:
      "With npm `ai` 7.0.173. The base URL of text is the server's address with `/v2/{endpoint}/openai/v1`, that of images " +
      "`/v2/{endpoint}`; for speech, transcriptions and videos that whole address is the model's name.",
    calls: all([
      ...["generateText", "streamText", "generateText, completion", "generateImage", "generateSpeech", "transcribe"],
      "generateVideo",
    ]),
  },
  langchain: {
    client: "PyPI `langchain-runpod` 0.2.0",
    note: "Its argument `api_base` is the server's address with `/sdk/v2`.",
    calls: all(
      ["RunPod", "ChatRunPod"].flatMap((of) =>
        ["invoke", "ainvoke", "stream", "astream"].map((call) => `${of}.${call}`),
      ),
    ),
  },
} as const satisfies Record<string, ClientTable>;
