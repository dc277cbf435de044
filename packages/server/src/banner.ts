import type { StatusBody } from "@millrace/api";
import type { Millrace } from "./assemble.js";
import type { Config } from "./config.js";

/** What a start prints: the addresses, the key where it is new, the first job, and a line to paste. */
export function banner(
  config: Config,
  millrace: Millrace,
  demo: { endpointId: string; job: StatusBody } | undefined,
): string {
  const { url, newKey } = millrace;
  const lines = [
    "",
    `  Millrace is ready at ${url}`,
    `    queue API     ${url}/v2`,
    `    management    ${url}/v1        (${url}/v1/openapi.json)`,
    `    GraphQL       ${url}/graphql`,
    `    data          ${config.dataDir}`,
    newKey === undefined ? "" : `    API key       ${newKey}   (shown once; kept in ${config.dataDir}/api-key)`,
    demo
      ? `    first job     ${demo.job.status} after ${demo.job.delayTime} ms of waiting and ${demo.job.executionTime} ms of work: ${JSON.stringify(demo.job.output)}`
      : "",
    "",
    `  Try it:  curl -s ${url}/${demo ? `v2/${demo.endpointId}/runsync` : "v1/endpoints"} -H "Authorization: Bearer ${newKey ?? `$(cat ${config.dataDir}/api-key)`}"${demo ? ` -d '{"input":{"name":"you"}}'` : ""}`,
    "",
  ];
  return `${lines.filter((line, at) => line !== "" || at === 0 || at >= 8).join("\n")}\n`;
}
