import { type AuditEntry, type AuditPage, auditActions } from "@millrace/api";
import { ago } from "@millrace/api/words";
import { type Command, Option } from "commander";
import { shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { count } from "../count.js";
import { examples } from "../examples.js";
import { jsonNote } from "../json-note.js";
import { keys, nouns, users } from "../nouns/nouns.js";
import { idOf } from "../nouns/references.js";
import { among, listOf } from "../nouns/resources.js";
import { clipped, whyWidth } from "../output/plain.js";
import type { Column } from "../output/table.js";
import type { Tools } from "../tools.js";

interface Asked {
  readonly user?: string;
  readonly key?: string;
  readonly resource?: string;
  readonly action?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** The audit log. */
export function auditCommand(program: Command, tools: Tools): void {
  program
    .command("audit")
    .description("List what was changed, newest first: by your keys or, for admins, by anyone's.")
    .addHelpText("after", jsonNote("a page of the log, as GET /v1/audit returns it"))
    .option("--user <user>", "only changes by this user: a name or id; a deleted user's id")
    .option("--key <key>", "only changes with this key: a name or id")
    .option("--resource <resource>", "only changes of this: a name or id; the id of what is deleted")
    .addOption(new Option("--action <action>", "only this action, such as endpoint.update").choices(auditActions))
    .option("--limit <count>", "how many, 1 to 100 (default: 20)", count)
    .option("--cursor <cursor>", "go on where the page before has ended")
    .addHelpText(
      "after",
      examples(
        "millrace audit",
        "millrace audit --resource shout --limit 5",
        "millrace audit --action endpoint.delete  # what is deleted, with its id and name",
      ),
    )
    .action(async (asked: Asked, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const page = await calls.call<AuditPage>("GET", `/v1/audit?${await filtersOf(calls, asked)}`);
      if (terminal.isJson) return terminal.result(page, "");
      const names = new Map((await listOf(calls, users)).map(({ id, name = id }) => [id, name]));
      terminal.table(page.entries, columnsOf(names), noneOf(asked));
      if (page.nextCursor === undefined) return;
      const again = Object.entries({ ...asked, cursor: page.nextCursor });
      terminal.say(`Older: ${list} ${again.map(([name, value]) => `--${name} ${shellWord(`${value}`)}`).join(" ")}`);
    });
}

const list = "millrace audit";

const noneOf = ({ resource }: Asked): string =>
  resource === undefined
    ? `No such change. ${list}`
    : `No change of "${resource}". What is deleted has only its id: ${list} --action endpoint.delete`;

async function filtersOf(
  calls: Calls,
  { user, key, resource, action, limit = 20, cursor }: Asked,
): Promise<URLSearchParams> {
  return new URLSearchParams({
    limit: String(limit),
    ...(user === undefined ? {} : { userId: await idOf(calls, users, user) }),
    ...(key === undefined ? {} : { keyId: await idOf(calls, keys, key) }),
    ...(resource === undefined ? {} : { resource: await idOfAny(calls, resource) }),
    ...(action === undefined ? {} : { action }),
    ...(cursor === undefined ? {} : { cursor }),
  });
}

/** The id of anything that is given by its name; an endpoint has the same name as its template, and goes first. */
async function idOfAny(calls: Calls, given: string): Promise<string> {
  for (const noun of nouns) {
    const found = among(noun, await listOf(calls, noun), given);
    if (found) return found.id;
  }
  return given; // the id of something that is deleted, or another user's
}

const columnsOf = (names: ReadonlyMap<string, string>): Column<AuditEntry>[] => [
  { title: "when", of: ({ at }) => ago(at) },
  { title: "what", of: ({ action }) => action },
  { title: "resource", of: ({ resource }) => resource },
  { title: "by", of: ({ userId }) => names.get(userId) ?? userId },
  { title: "key", of: ({ keyPrefix }) => keyPrefix },
  { title: "from", of: ({ address }) => address },
  { title: "change", of: (entry) => clipped(changeWords(entry), whyWidth) },
];

/** The fields that differ, or the name of what is new or gone. */
function changeWords({ before, after }: AuditEntry): string {
  const isChange = before !== undefined && after !== undefined;
  const fields = { ...before, ...after };
  if (!isChange && typeof fields.name === "string") return fields.name;
  return Object.keys(fields)
    .map((name) => `${name} ${isChange ? `${words(before[name])} → ` : ""}${words((after ?? fields)[name])}`)
    .join(", ");
}

const words = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "–"));
