import type { Endpoint } from "@millrace/api";
import type { Calls } from "../calls.js";
import { find, type Kind } from "./resources.js";

export const endpoints: Kind = { noun: "endpoint", path: "/v1/endpoints" };

/** What makes the first one; only the first admin may run a folder. */
export const fillEndpoints = "millrace deploy FOLDER, or a container image: millrace deploy --name NAME --image IMAGE";

/** All endpoints of the key's user. */
export const listEndpoints = (calls: Calls) => calls.call<Endpoint[]>("GET", endpoints.path);

/** The id of an endpoint that is given by its name or its id. */
export const endpointId = async (calls: Calls, given: string): Promise<string> =>
  (await find(calls, endpoints, given)).id;
