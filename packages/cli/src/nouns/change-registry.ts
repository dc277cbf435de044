import type { Calls } from "../calls.js";
import { exits, Failure } from "../exit.js";
import type { Fields } from "../fields.js";
import type { Resource } from "./resources.js";

const mutation = "mutation ($input: UpdateRegistryAuthInput!) { updateRegistryAuth(input: $input) { id name } }";

interface Reply {
  readonly data?: { readonly updateRegistryAuth: Resource | null };
  readonly errors?: readonly { readonly message: string }[];
}

/** Replaces the user and the password for a registry, which only GraphQL can; who uses them need not change. */
export async function changeRegistry(calls: Calls, { id }: Resource, fields: Fields): Promise<Resource> {
  const { username, password, ...others } = fields;
  if (username === undefined || password === undefined || Object.keys(others).length > 0)
    throw new Failure(exits.usage, "A registry's username and password change together, and nothing else does.");
  const input = { id, username: String(username), password: String(password) };
  const { data, errors } = await calls.call<Reply>("POST", "/graphql", { query: mutation, variables: { input } });
  if (data?.updateRegistryAuth) return data.updateRegistryAuth;
  throw new Failure(exits.refused, errors?.[0]?.message ?? "The server has not changed it.");
}
