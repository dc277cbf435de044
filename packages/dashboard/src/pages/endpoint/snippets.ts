import type { Policy } from "@millrace/api";
import { filled, type Values } from "../../parts/form/schema.js";

interface Call {
  readonly url: string;
  readonly endpointId: string;
  /** JSON in one line. */
  readonly input: string;
  /** The other fields of the submission. */
  readonly options?: Values;
}

/** The JSON of a submission, with its input as it was typed: a number that JavaScript cannot hold is sent as it stands. */
export function submissionOf({ input, options = {} }: Pick<Call, "input" | "options">): string {
  const others = JSON.stringify(filled(options)).slice(1, -1);
  return `{"input":${input}${others && `,${others}`}}`;
}

/** The other fields as code to paste: with a word in place of the storage's secret, which is not shown. */
function shownOf(options: Values = {}): Values {
  const { s3Config } = options as { s3Config?: Values };
  return s3Config?.accessSecret ? { ...options, s3Config: { ...s3Config, accessSecret: "YOUR_SECRET" } } : options;
}

/** The submission, as code to paste. */
const shownSubmission = ({ input, options }: Pick<Call, "input" | "options">): string =>
  submissionOf({ input, options: shownOf(options) });

/** The policy as options of the command line. */
function flagsOf({ webhook, policy }: { readonly webhook?: string; readonly policy?: Policy } = {}): string {
  return [
    webhook ? ` --webhook ${quoted(webhook)}` : "",
    policy?.executionTimeout ? ` --execution-timeout ${policy.executionTimeout}` : "",
    policy?.ttl ? ` --ttl ${policy.ttl}` : "",
    policy?.lowPriority ? " --low-priority" : "",
  ].join("");
}

/** A text in single quotes of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** How to send the same job, by the client that people use. */
export const snippets = {
  curl: ({ url, endpointId, ...job }: Call) =>
    `curl -s ${url}/v2/${endpointId}/runsync \\
  -H "Authorization: Bearer $MILLRACE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(shownSubmission(job))}`,
  "command line": ({ url, endpointId, input, options }: Call) =>
    `MILLRACE_URL=${url} npx millrace run ${endpointId} ${quoted(input)}${flagsOf(options)}`,
  Python: ({ url, endpointId, ...job }: Call) =>
    `import json
import os
import runpod

runpod.api_key = os.environ["MILLRACE_API_KEY"]
runpod.endpoint_url_base = "${url}/v2"

endpoint = runpod.Endpoint("${endpointId}")
print(endpoint.run_sync(json.loads(${JSON.stringify(shownSubmission(job))})))`,
  TypeScript: ({ url, endpointId, ...job }: Call) =>
    `import { createClient } from "@millrace/api/client";

const client = createClient({ url: "${url}", key: process.env.MILLRACE_API_KEY ?? "" });
const { status, output } = await client.runsync("${endpointId}", ${shownSubmission(job)});
console.log(status, output);`,
  "OpenAI client": ({ url, endpointId }: Call) =>
    `from openai import OpenAI
import os

client = OpenAI(base_url="${url}/v2/${endpointId}/openai/v1", api_key=os.environ["MILLRACE_API_KEY"])
reply = client.chat.completions.create(
    model="your-model",
    messages=[{"role": "user", "content": "hello"}],
)
print(reply.choices[0].message.content)`,
} as const;
