import { type Command, Option } from "commander";
import { shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { seconds } from "../count.js";
import { hinted } from "../exit.js";
import { idOf } from "./references.js";
import type { Kind } from "./resources.js";

/** An option of a command that is sent with its request. */
export interface Choice {
  readonly flags: string;
  readonly about: string;
  /** What the request calls it. */
  readonly field: string;
  /** What it names, by name or id; absent for seconds and for an option without a value. */
  readonly of?: Kind;
}

/** Options as commander reads them, by their names. */
export type Given = Readonly<Record<string, string | number | true>>;
/** What a request is sent, by the names of the API. */
type Chosen = Record<string, string | number | true>;

export function offer(command: Command, choices: readonly Choice[] = []): Command {
  for (const choice of choices) {
    const option = optionOf(choice);
    if (choice.flags.includes("<seconds>")) option.argParser(seconds);
    command.addOption(option);
  }
  return command;
}

/** The fields of the options that were given, with ids in place of names. */
export async function chosen(calls: Calls, choices: readonly Choice[] = [], given: Given = {}): Promise<Chosen> {
  const fields: Chosen = {};
  for (const choice of choices) {
    const value = given[optionOf(choice).attributeName()];
    if (value !== undefined) fields[choice.field] = choice.of ? await idOf(calls, choice.of, String(value)) : value;
  }
  return fields;
}

/** The options again, as they were given. */
export const asWords = (choices: readonly Choice[] = [], given: Given = {}): string[] =>
  choices.flatMap((choice) => {
    const option = optionOf(choice);
    const value = given[option.attributeName()];
    if (value === undefined) return [];
    return [option.long ?? "", ...(value === true ? [] : [shellWord(String(value))])];
  });

const optionOf = ({ flags, about }: Choice): Option => new Option(flags, about);

/** Adds the options to a refusal that asks for parameters which they stand for. */
export async function hintedBy<T>(asked: Promise<T>, choices: readonly Choice[] = [], call: string): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    const { message } = error as Error;
    const wanted = choices.filter(({ field }) => message.includes(`?${field}=`));
    if (wanted.length === 0) throw error;
    return hinted(Promise.reject(error), `${call} ${wanted.map(({ flags }) => flags).join(" | ")}`);
  }
}

/** A path with parameters. */
export function pathWith(path: string, fields: Readonly<Chosen>): string {
  const pairs = Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]);
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`;
}
