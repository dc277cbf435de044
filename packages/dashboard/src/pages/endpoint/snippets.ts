interface Call {
  readonly url: string;
  readonly endpointId: string;
  /** JSON in one line. */
  readonly input: string;
}

/** A text in single quotes of a shell. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** How to send the same job, by the client that people use. */
export const snippets = {
  curl: ({ url, endpointId, input }: Call) =>
    `curl -s ${url}/v2/${endpointId}/runsync \\
  -H "Authorization: Bearer $MILLRACE_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d ${quoted(`{"input":${input}}`)}`,
  "command line": ({ url, endpointId, input }: Call) =>
    `MILLRACE_URL=${url} npx millrace run ${endpointId} ${quoted(input)}`,
  Python: ({ url, endpointId, input }: Call) =>
    `import json
import os
import runpod

runpod.api_key = os.environ["MILLRACE_API_KEY"]
runpod.endpoint_url_base = "${url}/v2"

endpoint = runpod.Endpoint("${endpointId}")
print(endpoint.run_sync({"input": json.loads(${JSON.stringify(input)})}))`,
  TypeScript: ({ url, endpointId, input }: Call) =>
    `import { createClient } from "@millrace/api/client";

const client = createClient({ url: "${url}", key: process.env.MILLRACE_API_KEY ?? "" });
const { status, output } = await client.runsync("${endpointId}", { input: ${input} });
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
