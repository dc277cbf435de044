import { expect } from "vitest";
import { call, type TestServer } from "../../harness.js";
import type { Fact, Facts, Operation } from "./facts.js";

/** A reply of a server: JSON that the tests check. */
// biome-ignore lint/suspicious/noExplicitAny: tests check its shape
export type Said = any;

/** Facts that do not hold here on purpose: the field, and why. */
export type Differences = Readonly<Record<string, string>>;

/** The first word of an operation's path. */
export const kindOf = ({ path }: Operation): string => path.split("/")[1] ?? "";
export const isCreation = ({ method, path }: Operation): boolean => method === "POST" && path.split("/").length === 2;

/** The operations as rows of tests: all of them, and those with a body, with words in it, and with a query. */
export function rowsOf(operations: readonly Operation[]) {
  const all = operations.map((operation) => ({ operation, name: `${operation.method} ${operation.path}` }));
  const withBody = all.filter(({ operation }) => operation.body);
  return {
    all,
    withBody,
    withWords: withBody.filter(({ operation }) => Object.values(operation.body ?? {}).some(({ of }) => of)),
    withQuery: all.filter(({ operation }) => operation.query),
  };
}

/** Expects the status, and no body with 204. */
export function expectStatus({ status, body }: Said, operation: Operation): void {
  expect(status, JSON.stringify(body)).toBe(operation.status);
  if (status === 204) expect(body).toBeUndefined();
}

/** How a walk finds what it needs: ids for paths, bodies that are accepted, and values for fields of other resources. */
export interface Ground {
  readonly server: TestServer;
  readonly prefix: string;
  /** A path with the id of a resource that may be changed or deleted. */
  readonly filled: (operation: Operation) => Promise<string>;
  readonly body: (operation: Operation) => Promise<object>;
  /** The status of a refused body. */
  readonly refusals: readonly number[];
}

const types: Readonly<Record<Fact["is"], (value: unknown) => boolean>> = {
  text: (value) => typeof value === "string",
  whole: Number.isInteger,
  number: (value) => typeof value === "number",
  flag: (value) => typeof value === "boolean",
  list: Array.isArray,
  map: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
};

/** Expects every field to be there with its type, but for those that `absent` names. */
export function expectFields(shown: Said, facts: Facts, absent: Differences = {}): void {
  const wrong = Object.entries(facts).filter(([name, { is, of }]) => {
    const value = shown[name];
    if (value === undefined || value === null) return !(name in absent);
    return !types[is](value) || (of !== undefined && is === "text" && !of.includes(value));
  });
  expect(wrong.map(([name, { is }]) => `${name} is no ${is}: ${JSON.stringify(shown[name])}`)).toEqual([]);
}

/** What a field's value may not be, each with a reason. */
function misfits({ is, of, least, most }: Fact): [unknown, string][] {
  const wrongType = is === "list" || is === "map" ? "a text" : is === "text" ? { an: "object" } : ["a", "list"];
  return [
    [wrongType, "another type"],
    ...(of ? ([[is === "list" ? ["NO SUCH WORD"] : "NO SUCH WORD", "an unknown word"]] as [unknown, string][]) : []),
    ...(least === undefined ? [] : ([[least - 1, "less than allowed"]] as [unknown, string][])),
    ...(most === undefined ? [] : ([[most + 1, "more than allowed"]] as [unknown, string][])),
  ];
}

/** A body with a field set; `workers.min` is a field of the object `workers`. */
function withField(body: object, field: string, value: unknown): object {
  const [outer = "", inner] = field.split(".");
  const whole = body as Said;
  return inner === undefined
    ? { ...whole, [outer]: value }
    : { ...whole, [outer]: { ...whole[outer], [inner]: value } };
}

export const fieldOf = (shown: Said, field: string): unknown =>
  field.split(".").reduce((value, name) => value?.[name], shown);

export async function ask(ground: Ground, operation: Operation, path: string, body?: object): Promise<Said> {
  return call(ground.server, operation.method, `${ground.prefix}${path}`, body);
}

/** Sends each field of an operation's body with each value that it may not have; what was not refused, naming the field. */
export async function acceptedMisfits(ground: Ground, operation: Operation) {
  const path = await ground.filled(operation);
  const accepted: string[] = [];
  for (const [field, fact] of Object.entries(operation.body ?? {})) {
    for (const [value, why] of misfits(fact)) {
      const answer = await ask(ground, operation, path, withField(await ground.body(operation), field, value));
      const isNamed = JSON.stringify(answer.body).includes(field);
      if (!ground.refusals.includes(answer.status) || !isNamed)
        accepted.push(`${field}, ${why}: ${answer.status} ${JSON.stringify(answer.body)?.slice(0, 200)}`);
    }
  }
  for (const field of operation.required ?? []) {
    const { [field]: _, ...rest } = (await ground.body(operation)) as Record<string, unknown>;
    const answer = await ask(ground, operation, path, rest);
    if (!ground.refusals.includes(answer.status) || !JSON.stringify(answer.body).includes(field))
      accepted.push(`without ${field}: ${answer.status}`);
  }
  return accepted;
}

/** Sends each word that a field may have; what was refused. */
export async function refusedWords(ground: Ground, operation: Operation) {
  const refused: string[] = [];
  for (const [field, { is, of = [] }] of Object.entries(operation.body ?? {})) {
    for (const each of of) {
      const path = await ground.filled(operation);
      const body = withField(await ground.body(operation), field, is === "list" ? [each] : each);
      const { status, body: said } = await ask(ground, operation, path, body);
      if (status !== operation.status)
        refused.push(`${field} ${each}: ${status} ${JSON.stringify(said)?.slice(0, 200)}`);
    }
  }
  return refused;
}

/** Sends each query; what was not answered as it should be. `refused` has the words that are refused on purpose. */
export async function wrongQueries(
  ground: Ground,
  operation: Operation,
  values: Readonly<Record<string, string>>,
  refused: Differences = {},
) {
  const wrong: string[] = [];
  const path = await ground.filled(operation);
  for (const [name, { is, of }] of Object.entries(operation.query ?? {})) {
    const good = of ?? (is === "flag" ? ["true", "false"] : [values[name] ?? "some"]);
    for (const each of good) {
      const { status, body } = await ask(ground, operation, `${path}?${name}=${encodeURIComponent(each)}`);
      const isRight =
        `${operation.path}?${name}=${each}` in refused ? ground.refusals.includes(status) : status === operation.status;
      if (!isRight) wrong.push(`${name}=${each}: ${status} ${JSON.stringify(body)?.slice(0, 200)}`);
    }
    if (!of) continue;
    const { status, body } = await ask(ground, operation, `${path}?${name}=NO-SUCH-WORD`);
    if (!ground.refusals.includes(status) || !JSON.stringify(body).includes(name))
      wrong.push(`${name} with an unknown word: ${status} ${JSON.stringify(body)?.slice(0, 200)}`);
  }
  return wrong;
}
