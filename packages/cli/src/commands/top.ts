import { setTimeout as sleep } from "node:timers/promises";
import type { Endpoint, HealthBody, Worker } from "@millrace/api";
import type { Command } from "commander";
import type { Calls } from "../calls.js";
import { examples } from "../examples.js";
import { exits, Failure } from "../exit.js";
import { jsonNote } from "../json-note.js";
import { fillEndpoints } from "../nouns/endpoints.js";
import { inLines } from "../output/plain.js";
import type { Column } from "../output/table.js";
import type { Tools } from "../tools.js";

/** How many endpoints one screen has. */
const shownMost = 40;
const askedAtOnce = 8;
const lookMs = 1_000;

interface Row {
  readonly name: string;
  readonly health: HealthBody;
  /** How many GPUs its workers have. */
  readonly gpus: number;
}

const columns: readonly Column<Row>[] = [
  { title: "endpoint", of: ({ name }) => name },
  { title: "waiting", of: ({ health }) => health.jobs.inQueue },
  { title: "running", of: ({ health }) => health.jobs.inProgress },
  { title: "done", of: ({ health }) => health.jobs.completed },
  { title: "failed", of: ({ health }) => health.jobs.failed },
  { title: "GPUs", of: ({ gpus }) => gpus },
  { title: "workers", of: ({ health }) => workersIn(health) },
];

/** An endpoint's workers in a few words, such as `2 idle, 1 busy`. */
function workersIn({ workers }: HealthBody): string {
  const counts = { idle: workers.idle, busy: workers.running, starting: workers.initializing };
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([state, count]) => `${count} ${state}`).join(", ") || "none";
}

/** The command that shows what goes on, until it is interrupted. */
export function topCommand(program: Command, tools: Tools): void {
  program
    .command("top")
    .description("Watch all endpoints: their jobs and workers, every second.")
    .option("--once", "print it once and end; so does every output that is no terminal")
    .addHelpText(
      "after",
      jsonNote(
        "the endpoints, once",
        "{ name: string, health: Health, gpus: number }[], where Health is what GET /v2/{endpoint}/health returns and gpus how many its workers have",
      ),
    )
    .addHelpText("after", examples("millrace top", "millrace top --once"))
    .action(async ({ once }: { once?: true }, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const { out } = tools.streams;
      if (once || terminal.isJson || out.isTTY !== true) {
        terminal.table((await look(calls)).rows, columns, `No endpoints. ${fillEndpoints}`);
        return;
      }
      const { createLogUpdate } = await import("log-update");
      const screen = createLogUpdate(out as NodeJS.WriteStream);
      while (!tools.interrupted.aborted) {
        const seen = await look(calls).catch((error: unknown) => {
          if (!(error instanceof Failure) || (error.exit !== exits.unreachable && !error.isForNow)) throw error;
          screen(`${terminal.styled("bold", calls.url)}   ${error.message} Trying again.`);
        });
        if (!seen) {
          await sleep(lookMs);
          continue;
        }
        const { rows, waiting, running, more } = seen;
        const gpus = rows.reduce((sum, row) => sum + row.gpus, 0);
        const counts = [`${waiting} waiting`, `${running} running`, `${gpus} GPUs in use`];
        const head = inLines([calls.url, ...counts, new Date().toTimeString().slice(0, 8)], terminal.columns, "   ");
        screen(
          `${head.map((line) => terminal.styled("bold", line)).join("\n")}\n\n${terminal.tableText(rows, columns)}${more > 0 ? `\n\nand ${more} more with less to do` : ""}`,
        );
        await sleep(lookMs);
      }
    });
}

/** The endpoints with most to do, and what all of them have. */
async function look(calls: Calls): Promise<{ rows: Row[]; waiting: number; running: number; more: number }> {
  const all = await calls.call<(Endpoint & { health: HealthBody })[]>("GET", "/v1/endpoints?includeHealth=true");
  const sum = (of: (jobs: HealthBody["jobs"]) => number) =>
    all.reduce((total, { health }) => total + of(health.jobs), 0);
  const load = ({ health }: { health: HealthBody }) => health.jobs.inQueue + health.jobs.inProgress;
  all.sort((one, other) => load(other) - load(one) || (one.name < other.name ? -1 : 1));
  const shown = all.slice(0, shownMost);
  const rows: Row[] = shown.map(({ name, health }) => ({ name, health, gpus: 0 }));
  const left = shown.entries();
  const askOnAndOn = async () => {
    for (const [n, { id, name, health }] of left) rows[n] = { name, health, gpus: await gpusOf(calls, id, health) };
  };
  await Promise.all(Array.from({ length: askedAtOnce }, askOnAndOn));
  const counts = { waiting: sum(({ inQueue }) => inQueue), running: sum(({ inProgress }) => inProgress) };
  return { rows, ...counts, more: all.length - shown.length };
}

/** How many GPUs an endpoint's workers have; without workers nothing is asked. */
async function gpusOf(calls: Calls, endpointId: string, { workers }: HealthBody): Promise<number> {
  if (Object.values(workers).every((count) => count === 0)) return 0;
  const living = await calls.call<Worker[]>("GET", `/v1/endpoints/${endpointId}/workers`);
  return living.reduce((sum, { gpus }) => sum + gpus.length, 0);
}
