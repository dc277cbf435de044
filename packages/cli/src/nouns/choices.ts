import { type Command, Option } from "commander";
import { shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import { seconds } from "../count.js";
import { exits, Failure } from "../exit.js";
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

/** What was written for the ids of the options that name something. */
export const namesOf = (choices: readonly Choice[] = [], given: Given, chosen: Chosen): [id: string, name: string][] =>
  choices
    .filter(({ of, field }) => of && chosen[field] !== undefined)
    .map((choice) => [String(chosen[choice.field]), String(given[optionOf(choice).attributeName()])]);

/** How a refusal of a call's parameters is put for people, who gave options and names. */
interface Wording {
  readonly choices: readonly Choice[] | undefined;
  /** What was written for an id. */
  readonly names: ReadonlyMap<string, string>;
  /** The command as it was called, without options. */
  readonly call: string;
}

/** Words a refusal with the names that were written, and offers options where it asks for the parameters behind them. */
export async function inWords<T>(asked: Promise<T>, { choices = [], names, call }: Wording): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (!(error instanceof Failure) || error.exit !== exits.refused) throw error;
    const { exit, message, hint, isForNow, status } = error;
    const wanted = choices.filter(({ field }) => message.includes(`?${field}=`));
    const fact = wanted.length === 0 ? message : message.replace(/: [^:]*\?\w+=.*$/s, ".");
    const named = fact.replaceAll(/'([^']+)'/g, (quoted, id) => (names.has(id) ? `"${names.get(id)}"` : quoted));
    const offered = `${call} ${wanted.map(({ flags }) => flags).join(" | ")}`;
    throw new Failure(exit, named, wanted.length === 0 ? hint : offered, isForNow, status);
  }
}

/** A path with parameters. */
export function pathWith(path: string, fields: Readonly<Chosen>): string {
  const pairs = Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)]);
  return pairs.length === 0 ? path : `${path}?${new URLSearchParams(pairs)}`;
}
