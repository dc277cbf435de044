import type { Endpoint } from "@millrace/api";
import { closest, distance } from "fastest-levenshtein";
import type { Calls } from "./calls.js";
import { exits, Failure } from "./exit.js";

/** All endpoints of the key's user. */
export const listEndpoints = (calls: Calls) => calls.call<Endpoint[]>("GET", "/v1/endpoints");

/** The id of an endpoint that is given by its name or its id. */
export async function endpointId(calls: Calls, given: string): Promise<string> {
  const all = await listEndpoints(calls);
  if (all.some(({ id }) => id === given)) return given;
  const named = all.filter(({ name }) => name === given || name === `${given} -fb`);
  if (named.length === 1) return (named[0] as Endpoint).id;
  if (named.length > 1) {
    const ids = named.map(({ id }) => id).join(", ");
    throw new Failure(exits.usage, `${named.length} endpoints are called "${given}": use an id, one of ${ids}.`);
  }
  throw new Failure(exits.usage, `Endpoint "${given}" does not exist.${nearest(given, all)}`, "millrace endpoint list");
}

/** The name that was probably meant, as a question. */
function nearest(given: string, all: readonly Endpoint[]): string {
  if (all.length === 0) return "";
  const name = closest(
    given,
    all.map(({ name }) => name),
  );
  return distance(given, name) <= Math.max(2, given.length / 3) ? ` Did you mean "${name}"?` : "";
}
