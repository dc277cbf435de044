import type { StatusBody } from "@millrace/api";
import type { Millrace } from "./assemble.js";
import type { Config } from "./config.js";

/** What a start reports besides its configuration. */
interface Started {
  readonly millrace: Pick<Millrace, "url" | "dashboardUrl" | "key" | "newKey">;
  readonly demo: { endpointId: string; job: StatusBody } | undefined;
  /** Whether a person is reading: otherwise the output ends up in a journal, where a key would outlive its use. */
  readonly isTerminal: boolean;
}

/** What a start prints: the addresses, where the key is, the first job, and a command to paste. */
export function banner(config: Config, started: Started): string {
  const { millrace, demo } = started;
  const { url } = millrace;
  const call = demo ? `v2/${demo.endpointId}/runsync` : "v1/endpoints";
  const input = demo ? ` -d '{"input":{"name":"you"}}'` : "";
  const lines = [
    "",
    `  Millrace is ready at ${url}`,
    `    dashboard     ${millrace.dashboardUrl}`,
    `    queue API     ${url}/v2`,
    `    management    ${url}/v1`,
    `    GraphQL       ${url}/graphql`,
    `    API pages     ${url}/docs`,
    `    data          ${config.dataDir}`,
    `    runtime       Node.js ${process.versions.node}`,
    ...keyLines(config, started),
    ...webhookLines(config),
    ...hostLines(config),
    ...jobLines(started),
    "",
    `  Try it:  curl -s ${url}/${call} -H "Authorization: Bearer ${pasted(config, started)}"${input}`,
    "",
  ];
  return `${lines.join("\n")}\n`;
}

const keyFile = ({ dataDir }: Config): string => `${dataDir}/api-key`;

function keyLines(config: Config, { millrace, isTerminal }: Started): string[] {
  const { key, newKey } = millrace;
  if (key === undefined)
    return ["    API key       the one that the first server of this database keeps in its data directory"];
  if (newKey === undefined) return [];
  if (!isTerminal) return [`    API key       made, and kept in ${keyFile(config)}`];
  return [`    API key       ${newKey}   (shown once; kept in ${keyFile(config)})`];
}

/** The key in the command to paste: the shell reads it from its file. */
function pasted(config: Config, { millrace, isTerminal }: Started): string {
  if (millrace.key === undefined) return "$MILLRACE_API_KEY";
  return isTerminal && millrace.newKey !== undefined ? millrace.newKey : `$(cat ${keyFile(config)})`;
}

const webhookLines = ({ webhookPrivate }: Config): string[] =>
  webhookPrivate
    ? ["    webhooks      may go to private addresses (MILLRACE_WEBHOOK_PRIVATE=off if others may submit jobs)"]
    : [];

const hostLines = ({ hostNames }: Config): string[] =>
  hostNames === undefined ? ["    host names    all are accepted (list yours in MILLRACE_HOST_NAMES)"] : [];

function jobLines({ demo }: Started): string[] {
  if (!demo) return [];
  const { status, delayTime, executionTime, output } = demo.job;
  const times = `${delayTime} ms of waiting and ${executionTime} ms of work`;
  return [`    first job     ${status} after ${times}: ${JSON.stringify(output)}`];
}
