import type { StatusBody } from "@millrace/api";
import { span } from "@millrace/api/words";
import type { Command } from "commander";
import { count } from "../count.js";
import { examples } from "../examples.js";
import { exits } from "../exit.js";
import { readInput } from "../input.js";
import { ended, submitted } from "../jobs.js";
import { jsonNote } from "../json-note.js";
import { endpointId } from "../nouns/endpoints.js";
import type { Tools } from "../tools.js";

/** The command that measures an endpoint. */
export function benchCommand(program: Command, tools: Tools): void {
  program
    .command("bench")
    .description("Run many jobs at an endpoint, and say how long they waited and ran.")
    .argument("<endpoint>", "its name or id")
    .option("--jobs <count>", "how many", count, 100)
    .option("--at-once <count>", "how many at a time", count, 10)
    .option("--input <json>", "each job's input: a JSON object, @file.json or -", "{}")
    .addHelpText(
      "after",
      jsonNote(
        "the figures, with times in ms",
        "{ jobs: number, failed: number, perSecond: number, waiting: Times, running: Times, total: Times }, where Times is { p50: number, p95: number, p99: number }",
      ),
    )
    .addHelpText("after", examples(`millrace bench shout --jobs 500 --at-once 20 --input '{"text":"hello"}'`))
    .action(async (given: string, options: Options, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const input = await readInput(options.input, tools.streams.in);
      const endpoint = await endpointId(calls, given);
      const bar = terminal.bar(options.jobs, 0);
      const measured: Measured[] = [];
      let begun = 0;
      const beganAt = performance.now();
      const runOnAndOn = async () => {
        while (begun < options.jobs) {
          begun++;
          const sentAt = performance.now();
          const { id } = await submitted(calls, endpoint, { input });
          const body = await ended(calls, endpoint, id);
          measured.push({ body, totalMs: performance.now() - sentAt });
          bar.update(measured.length);
        }
      };
      try {
        await Promise.all(Array.from({ length: options.atOnce }, runOnAndOn));
      } finally {
        bar.end();
      }
      const seconds = (performance.now() - beganAt) / 1_000;
      const failed = measured.filter(({ body }) => body.status !== "COMPLETED").length;
      const perSecond = Math.round((measured.length / seconds) * 10) / 10;
      const times = {
        waiting: percentiles(measured.map(({ body }) => body.delayTime)),
        running: percentiles(measured.map(({ body }) => body.executionTime)),
        total: percentiles(measured.map(({ totalMs }) => totalMs)),
      };
      const lines = Object.entries(times).map(
        ([name, { p50, p95, p99 }]) => `  ${name.padEnd(8)} p50 ${span(p50)} · p95 ${span(p95)} · p99 ${span(p99)}`,
      );
      terminal.result(
        { jobs: measured.length, failed, perSecond, ...times },
        [`${measured.length} jobs, ${failed} failed, ${perSecond} a second`, ...lines].join("\n"),
      );
      tools.end(failed === 0 ? exits.done : exits.failed);
    });
}

interface Options {
  readonly jobs: number;
  readonly atOnce: number;
  readonly input: string;
}

interface Measured {
  readonly body: StatusBody;
  /** From the submission to the end, as the caller sees it. */
  readonly totalMs: number;
}

function percentiles(values: readonly number[]) {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (share: number) => Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}
