import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { StatusBody } from "@millrace/api";
import { span } from "@millrace/api/words";
import { exits, Failure } from "../exit.js";
import { reasonOf } from "../files.js";
import type { Terminal } from "../output/terminal.js";

/** A job and what must come of it: the `output`, or an `error` that contains a text. */
export interface Check {
  readonly name: string;
  readonly input: object;
  readonly output?: unknown;
  readonly error?: string;
}

/** Reads the checks in a folder: each `*.json` is `{"input": {…}, "output": …}` or `{"input": {…}, "error": "…"}`. */
export function readChecks(folder: string): Check[] {
  const files = filesIn(folder)
    .filter((name) => name.endsWith(".json") && !/(^|\/)(\.|node_modules\/)/.test(name))
    .sort();
  if (files.length === 0) throw new Failure(exits.usage, `There are no .json files in ${folder}.`, example);
  return files.map((name) => checkOf(name, readFileSync(join(folder, name), "utf8")));
}

const example = `echo '{"input": {"text": "hi"}, "output": "HI"}' > tests/hi.json`;

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch (error) {
    throw new Failure(exits.usage, `${folder} cannot be read: ${reasonOf(error)}.`, "--test shout/tests");
  }
}

function checkOf(name: string, text: string): Check {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure(exits.usage, `${name} is not valid JSON: ${(error as Error).message}`);
  }
  const { input, output, error } = (value ?? {}) as Partial<Check>;
  const isWhole = typeof input === "object" && input !== null && (output === undefined) !== (typeof error !== "string");
  if (!isWhole)
    throw new Failure(exits.usage, `${name} must have an "input", and either an "output" or an "error".`, example);
  return { name, input, ...(error === undefined ? { output } : { error }) };
}

/** Runs checks one after the other and shows each verdict; returns how many failed. */
export async function runChecks(
  checks: readonly Check[],
  terminal: Terminal,
  run: (input: object) => Promise<StatusBody>,
): Promise<number> {
  let failed = 0;
  for (const check of checks) {
    const body = await run(check.input);
    const complaint = complaintOf(check, body);
    if (complaint !== undefined) failed++;
    const mark = complaint === undefined ? terminal.styled("green", "✓") : terminal.styled("red", "✗");
    const why = complaint === undefined ? "" : `\n${complaint.replace(/^/gm, "    ")}`;
    terminal.result(
      {
        check: check.name,
        passed: complaint === undefined,
        status: body.status,
        output: body.output,
        error: body.error,
      },
      `${mark} ${check.name}  ${span(body.executionTime)}${why}`,
    );
  }
  terminal.say(`${checks.length - failed} of ${checks.length} passed`);
  return failed;
}

/** What is wrong with a job's end; undefined if nothing is. */
function complaintOf({ output, error }: Check, body: StatusBody): string | undefined {
  const came = body.status === "COMPLETED" ? show(body.output) : `${body.status}: ${body.error ?? ""}`;
  if (error !== undefined) {
    const isRight = body.status !== "COMPLETED" && (body.error ?? body.status).includes(error);
    return isRight ? undefined : `expected an error with: ${error}\ncame:                   ${came}`;
  }
  const isRight = body.status === "COMPLETED" && isDeepStrictEqual(plain(body.output), output);
  return isRight ? undefined : `expected: ${show(output)}\ncame:     ${came}`;
}

const show = (value: unknown): string => JSON.stringify(value ?? null);

/** A value whose numbers are JavaScript's: in a check 1.0 is 1. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));
