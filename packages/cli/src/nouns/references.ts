import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";
import type { Fields } from "../fields.js";
import { find, type Kind } from "./resources.js";

/**
 * Fields that hold ids, and the kind of resource that each means. A dot leads into an object or into each entry of a
 * list, as in `scope.endpoints.id`.
 */
export type References = Readonly<Record<string, Kind>>;

/** The fields with ids where people have written names. */
export async function withIds(calls: Calls, references: References, fields: Fields): Promise<Fields> {
  let replaced: unknown = fields;
  for (const [path, kind] of Object.entries(references))
    replaced = await replacedAt(replaced, path.split("."), (given) => idOf(calls, kind, given));
  return replaced as Fields;
}

/** A value whose texts at a path are replaced; everything else stays for the server to judge. */
async function replacedAt(
  value: unknown,
  path: readonly string[],
  idOf: (given: string) => Promise<string>,
): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((each) => replacedAt(each, path, idOf)));
  const [field, ...rest] = path;
  if (field === undefined) return typeof value === "string" && value !== "" ? idOf(value) : value;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, field)) return value;
  return { ...value, [field]: await replacedAt((value as Fields)[field], rest, idOf) };
}

/** The id of one that is given by its name or its id. */
export async function idOf(calls: Calls, kind: Kind, given: string): Promise<string> {
  try {
    return (await find(calls, kind, given)).id;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.exit === exits.refused) return given; // such as a list of users, which is for admins
    if (looksLikeId(given)) return given; // it may be another user's, which an admin does not see
    // others' templates may be used, and are not listed
    const isThere = calls.call("GET", `${kind.path}/${encodeURIComponent(given)}`).then(
      () => true,
      () => false,
    );
    if (await isThere) return given;
    throw error;
  }
}

const looksLikeId = (given: string): boolean => /^(user_)?[a-z\d]{14}$/.test(given);
