import { ApiError, createClient } from "@millrace/api/client";

/** Where the key is kept: until the tab is closed. */
const place = "millrace.key";

export const keyOfSession = (): string | null => sessionStorage.getItem(place);

/** Keeps a key for this tab, if the server knows it; throws an {@link ApiError} if not. */
export async function signIn(key: string): Promise<void> {
  await clientFor(key).call("GET", "/v1/endpoints");
  sessionStorage.setItem(place, key);
}

/** Signs in with the token of a one-time link, if the page was opened by one; the token leaves the address at once. */
export async function signInByLink(): Promise<void> {
  const token = new URLSearchParams(location.search).get("once");
  if (token === null) return;
  history.replaceState(null, "", location.pathname);
  const reply = await fetch("/sign-in/once", { method: "POST", headers: { authorization: `Once ${token}` } });
  if (!reply.ok) return; // the sign-in page asks for a key
  sessionStorage.setItem(place, ((await reply.json()) as { key: string }).key);
}

export const signOut = (): void => sessionStorage.removeItem(place);

const clientFor = (key: string) => createClient({ url: location.origin, key });

/** The client of the key that is signed in. Whoever has none is sent to the sign-in page by the router. */
export const client = () => clientFor(keyOfSession() ?? "");

/** Whether an error says that the key does not count (any more). */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

export const get = <T>(path: string): Promise<T> => client().call<T>("GET", path);
export const send = <T>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> =>
  client().call<T>(method, path, body);
