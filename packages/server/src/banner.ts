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

/** What a start prints for people: the addresses, where the key is, the first job, and a command to paste. */
export function banner(config: Config, started: Started): string {
  const { millrace, demo } = started;
  const { url } = millrace;
  const call = demo ? `v2/${demo.endpointId}/runsync` : "v1/endpoints";
  const input = demo ? ` -d '{"input":{"name":"you"}}'` : "";
  const lines = [
    "",
    `  Millrace is ready at ${url}`,
    ...facts(config, started).map(([name, words]) => `    ${name.padEnd(13)} ${words}`),
    "",
    `  Try it:  curl -s ${url}/${call} -H "Authorization: Bearer ${pasted(config, started)}"${input}`,
    "",
  ];
  return `${lines.join("\n")}\n`;
}

/** The same for programs, by name, and never with the key. */
export const namedFacts = (config: Config, started: Omit<Started, "isTerminal">): Readonly<Record<string, string>> =>
  Object.fromEntries(facts(config, { ...started, isTerminal: false }));

type Fact = readonly [name: string, words: string];

const facts = (config: Config, started: Started): Fact[] => {
  const { url, dashboardUrl } = started.millrace;
  return [
    // its link signs in whoever is first: it is no more for journals than the key is
    ["dashboard", started.isTerminal ? dashboardUrl : `${url}/`],
    ["queue API", `${url}/v2`],
    ["management", `${url}/v1`],
    ["GraphQL", `${url}/graphql`],
    ["API pages", `${url}/docs`],
    ["data", config.dataDir],
    ["runtime", `Node.js ${process.versions.node}`],
    ...keyFacts(config, started),
    ...webhookFacts(config),
    ...hostFacts(config),
    ...jobFacts(started),
  ];
};

const keyFile = ({ dataDir }: Config): string => `${dataDir}/api-key`;

function keyFacts(config: Config, { millrace, isTerminal }: Started): Fact[] {
  const { key, newKey } = millrace;
  if (key === undefined)
    return [["API key", "the one that the first server of this database keeps in its data directory"]];
  if (newKey === undefined) return [];
  if (!isTerminal) return [["API key", `made, and kept in ${keyFile(config)}`]];
  return [["API key", `${newKey}   (shown once; kept in ${keyFile(config)})`]];
}

/** The key in the command to paste: the shell reads it from its file. */
function pasted(config: Config, { millrace, isTerminal }: Started): string {
  if (millrace.key === undefined) return "$MILLRACE_API_KEY";
  return isTerminal && millrace.newKey !== undefined ? millrace.newKey : `$(cat ${keyFile(config)})`;
}

const webhookFacts = ({ webhookPrivate }: Config): Fact[] =>
  webhookPrivate
    ? [["webhooks", "may go to private addresses (MILLRACE_WEBHOOK_PRIVATE=off if others may submit jobs)"]]
    : [];

const hostFacts = ({ hostNames }: Config): Fact[] =>
  hostNames === undefined ? [["host names", "all are accepted (list yours in MILLRACE_HOST_NAMES)"]] : [];

function jobFacts({ demo }: Started): Fact[] {
  if (!demo) return [];
  const { status, delayTime, executionTime, output } = demo.job;
  const times = `${delayTime} ms of waiting and ${executionTime} ms of work`;
  return [["first job", `${status} after ${times}: ${JSON.stringify(output)}`]];
}
