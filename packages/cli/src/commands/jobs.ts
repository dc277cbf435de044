import { resolve } from "node:path";
import type { StatusBody } from "@millrace/api";
import type { Command } from "commander";
import { shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { examples } from "../examples.js";
import { type Exit, exits, Failure, hinted } from "../exit.js";
import { readInput } from "../input.js";
import { showEnd, stateLine, untilEnd } from "../jobs.js";
import { jsonNote } from "../json-note.js";
import { endpointId } from "../nouns/endpoints.js";
import type { Terminal } from "../output/terminal.js";
import { type PolicyOptions, policyOf } from "../policy.js";
import type { Tools } from "../tools.js";

type Reference = Pick<StatusBody, "id" | "status" | "expired">;

interface Streamed {
  readonly status: string;
  readonly stream: readonly { readonly output: unknown }[];
}

interface RunOptions extends PolicyOptions {
  readonly wait: boolean;
  readonly webhook?: string;
  readonly idempotencyKey?: string;
  readonly batch?: string;
  readonly out?: string;
  readonly atOnce: string;
}

async function batch(
  tools: Tools,
  terminal: Terminal,
  calls: Calls,
  given: string,
  options: RunOptions,
): Promise<Exit> {
  const { batch: inputs = "", out, atOnce } = options;
  const policy = policyOf(options);
  if (inputs === "-")
    throw new Failure(exits.usage, "The inputs of a batch are read twice: put them in a file.", "--batch inputs.jsonl");
  if (out === undefined) throw new Failure(exits.usage, "Name a file for the results.", "--out results.jsonl");
  if (!/^[1-9]\d{0,3}$/.test(atOnce))
    throw new Failure(exits.usage, "--at-once must be a number from 1 to 9999.", "--at-once 32");
  const endpoint = await endpointId(calls, given);
  tools.interrupted.addEventListener("abort", () =>
    terminal.say("What was submitted goes on without you; the same command again takes up where this one ends."),
  );
  const { runBatch } = await import("../batch/batch.js");
  const files = { inputs: resolve(tools.folder, inputs), out: resolve(tools.folder, out) };
  const { count, failed, expired } = await runBatch(calls, terminal, {
    endpoint,
    ...files,
    ...(policy && { policy }),
    atOnce: Number(atOnce),
  });
  const lost = expired === 0 ? "" : ` and ${expired} expired before their results were fetched`;
  terminal.result({ jobs: count, failed, expired, out }, `${count} jobs, of which ${failed} failed${lost}: ${out}`);
  return failed + expired === 0 ? exits.done : exits.failed;
}

/** The command that lists the jobs there are. */
const jobsOf = (endpoint: string): string => `millrace requests ${shellWord(endpoint)}`;

/** Commands for one job. */
export function jobCommands(program: Command, tools: Tools): void {
  program
    .command("run")
    .description("Run a job and print its output.")
    .addHelpText(
      "after",
      jsonNote(
        "the job's status, as GET /v2/{endpoint}/status/{job} returns it; with --no-wait what POST /v2/{endpoint}/run returns; with --batch",
        "{ jobs: number, failed: number, expired: number, out: string }",
      ),
    )
    .argument("<endpoint>", "its name or id")
    .argument("[input]", "the input: a JSON object, @file.json, or - for standard input (default: {})")
    .option("--no-wait", "print the job's id and return at once")
    .option("--webhook <url>", "where the server posts the job's status when it has ended")
    .option("--idempotency-key <key>", "the same key, within 24 hours, returns the same job instead of a second one")
    .option("--execution-timeout <ms>", "how long one run may take, in milliseconds")
    .option("--ttl <ms>", "how long it may live from now, in milliseconds")
    .option("--low-priority", "wait for a worker that runs anyway, and start none")
    .option("--batch <file>", "run a job for each line of a file of inputs")
    .option("--out <file>", "where the results of a batch go, a line for each job")
    .option("--at-once <count>", "how many jobs of a batch may wait or run", "32")
    .addHelpText(
      "after",
      examples(
        `millrace run shout '{"text":"hello"}'`,
        "millrace run shout @input.json --json",
        `echo '{"text":"hello"}' | millrace run shout -`,
        "millrace run shout --batch inputs.jsonl --out results.jsonl",
      ),
    )
    .addHelpText(
      "after",
      "\nA batch that was interrupted goes on when it is run again: no job runs twice. A result is kept for 30 minutes; of a job that ended earlier the batch has only the status EXPIRED.",
    )
    .action(async (given: string, input: string | undefined, options: RunOptions, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      if (options.batch !== undefined && input !== undefined)
        throw new Failure(exits.usage, "A batch has its inputs from its file: leave the input out, or --batch.");
      const { webhook, idempotencyKey } = options;
      const policy = policyOf(options);
      if (options.batch !== undefined && options.webhook !== undefined)
        throw new Failure(exits.usage, "A batch writes its results to a file: leave --webhook out, or --batch.");
      if (options.batch !== undefined && options.idempotencyKey !== undefined)
        throw new Failure(exits.usage, "A batch has keys of its own: leave --idempotency-key out, or --batch.");
      if (options.batch !== undefined) return tools.end(await batch(tools, terminal, calls, given, options));
      const body = await readInput(input ?? "{}", tools.streams.in);
      const endpoint = await endpointId(calls, given);
      const submission = { input: body, ...(webhook === undefined ? {} : { webhook }), ...(policy && { policy }) };
      const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
      const job = await calls.call<Reference>("POST", `/v2/${endpoint}/run`, submission, headers);
      if (!options.wait) return terminal.result(job, job.id);
      if (job.expired)
        throw new Failure(
          exits.failed,
          `Job ${job.id} of this key was ${job.status}, and its result is not kept any more.`,
        );
      tools.interrupted.addEventListener("abort", () =>
        terminal.say(`The job goes on without you: millrace status ${shellWord(given)} ${job.id}`),
      );
      tools.end(showEnd(terminal, await untilEnd(calls, terminal, endpoint, job.id)));
    });

  program
    .command("status")
    .description("Show a job's state, and why it waits.")
    .addHelpText("after", jsonNote("the job's status, as GET /v2/{endpoint}/status/{job} returns it"))
    .argument("<endpoint>", "its name or id")
    .argument("<job>", "its id")
    .option("--wait", "wait for its end, and print its output")
    .addHelpText("after", examples("millrace status shout 7f3a… --wait"))
    .action(async (given: string, job: string, options: { wait?: true }, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const endpoint = await endpointId(calls, given);
      const path = `/v2/${endpoint}/status/${encodeURIComponent(job)}`;
      const body = await hinted(calls.call<StatusBody>("GET", path), jobsOf(given));
      if (options.wait) return tools.end(showEnd(terminal, await untilEnd(calls, terminal, endpoint, body.id)));
      terminal.result(body, stateLine(terminal, body));
    });

  program
    .command("stream")
    .description("Print what a job streams, as it comes.")
    .addHelpText("after", jsonNote("each entry of the stream that GET /v2/{endpoint}/stream/{job} returns, on a line"))
    .argument("<endpoint>", "its name or id")
    .argument("<job>", "its id")
    .addHelpText("after", examples("millrace stream shout $(millrace run shout --no-wait)"))
    .action(async (given: string, job: string, _: object, command: Command) => {
      const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
      const [endpoint, id] = [await endpointId(calls, given), encodeURIComponent(job)];
      for (let isNothing = true; ; ) {
        const asked = calls.call<Streamed>("GET", `/sdk/v2/${endpoint}/stream/${id}?wait=10000`);
        const { status, stream } = await hinted(asked, jobsOf(given));
        for (const chunk of stream)
          terminal.result(chunk, typeof chunk.output === "string" ? chunk.output : JSON.stringify(chunk.output));
        isNothing &&= stream.length === 0;
        if (status === "IN_QUEUE" || status === "IN_PROGRESS") continue;
        if (status === "COMPLETED" && isNothing)
          terminal.say(
            `The job has no chunks, or they were read already: each is handed out once. Its output: millrace status ${shellWord(given)} ${job} --wait`,
          );
        if (status === "COMPLETED") return;
        if (terminal.isJson) return tools.end(exits.failed); // its lines are all entries of the stream
        return tools.end(showEnd(terminal, await calls.call<StatusBody>("GET", `/v2/${endpoint}/status/${id}`)));
      }
    });

  for (const [name, summary, fitting] of [
    ["cancel", "Cancel a job that waits or runs.", ""],
    ["retry", "Put a job that failed or timed out back into the queue.", " --status FAILED"],
  ] as const)
    program
      .command(name)
      .description(summary)
      .addHelpText("after", jsonNote(`what POST /v2/{endpoint}/${name}/{job} returns`))
      .addHelpText("after", examples(`millrace ${name} shout 7f3a…`))
      .argument("<endpoint>", "its name or id")
      .argument("<job>", "its id")
      .action(async (given: string, job: string, _: object, command: Command) => {
        const [terminal, calls] = [tools.terminal(command), tools.calls(command)];
        const path = `/v2/${await endpointId(calls, given)}/${name}/${encodeURIComponent(job)}`;
        const body = await hinted(calls.call<Reference>("POST", path), `${jobsOf(given)}${fitting}`);
        terminal.result(body, `${body.id}  ${body.status}`);
      });
}
