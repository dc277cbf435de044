import { closest, distance } from "fastest-levenshtein";
import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";

/** Anything that a server keeps under an id, as it shows it. */
export interface Resource {
  readonly id: string;
  readonly name?: string;
  readonly [field: string]: unknown;
}

/** A kind of resource: what people call one, and where they are. */
export interface Kind {
  readonly noun: string;
  /** What one of them is called, if not as its commands. */
  readonly word?: string;
  readonly path: string;
  /** What people know one by, besides its id; its name unless told otherwise. */
  readonly nameOf?: (resource: Resource) => string | undefined;
  /** The name in what people may write for one, if that can be more. */
  readonly nameIn?: (given: string) => string;
  /** What is said of a name that is not known, if that is more than that it does not exist. */
  readonly missing?: (name: string) => string | undefined;
  /** How the page after a resource is asked for, where a list comes in pages of `pageSize`. */
  readonly pageAfter?: (resource: Resource) => string;
  /** Whether an admin may use other users', which lists leave out: by their ids. */
  readonly othersById?: true;
}

const pageSize = 100;

/** What people call one of these. */
export const wordFor = ({ noun, word = noun }: Kind): string => word;

const nameOf = ({ nameOf = ({ name }) => name }: Kind, resource: Resource): string => nameOf(resource) ?? resource.id;

export async function listOf(calls: Calls, { path, pageAfter }: Kind): Promise<Resource[]> {
  const all = await calls.call<Resource[]>("GET", path);
  for (let size = all.length; pageAfter && size >= pageSize; ) {
    const page = await calls.call<Resource[]>("GET", `${path}?${pageAfter(all.at(-1) as Resource)}`);
    all.push(...page);
    size = page.length;
  }
  return all;
}

/** The one that is meant by a name or an id. */
export async function find(calls: Calls, kind: Kind, given: string): Promise<Resource> {
  const all = await listOf(calls, kind);
  const found = among(kind, all, given) ?? (kind.othersById ? await byItsId(calls, kind, given) : undefined);
  if (found) return found;
  const word = wordFor(kind);
  const asked = kind.nameIn?.(given) ?? given;
  const missing = kind.missing?.(asked) ?? `${word[0]?.toUpperCase()}${word.slice(1)} "${given}" does not exist.`;
  const names = all.map((each) => nameOf(kind, each));
  const others = kind.othersById ? ` An admin gives another user's ${word} by its id.` : "";
  throw new Failure(exits.usage, `${missing}${nearest(asked, names)}${others}`, listing(kind));
}

/** The one among all of a kind that is meant, if there is one; that several have the name is refused. */
export function among(kind: Kind, all: readonly Resource[], given: string): Resource | undefined {
  const byId = all.find(({ id }) => id === given);
  if (byId) return byId;
  const asked = kind.nameIn?.(given) ?? given;
  const named = all.filter((each) => [asked, `${asked} -fb`].includes(nameOf(kind, each)));
  if (named.length <= 1) return named[0];
  const ids = named.map(({ id }) => id).join(", ");
  throw new Failure(exits.usage, `${named.length} are called "${given}": use an id, one of ${ids}.`, listing(kind));
}

const listing = ({ noun }: Kind): string => `millrace ${noun} list`;

async function byItsId(calls: Calls, { path }: Kind, id: string): Promise<Resource | undefined> {
  try {
    return await calls.call<Resource>("GET", `${path}/${encodeURIComponent(id)}`);
  } catch (error) {
    if (error instanceof Failure && error.status === 404) return undefined;
    throw error;
  }
}

/** The name that was probably meant, as a question. */
function nearest(given: string, names: readonly string[]): string {
  if (names.length === 0) return "";
  const name = closest(given, names);
  const differing = distance(given, name);
  return differing < given.length && differing <= Math.max(2, given.length / 3) ? ` Did you mean "${name}"?` : "";
}
