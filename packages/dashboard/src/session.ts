import { ApiError, createClient } from "@millrace/api/client";

/** Where the key is kept: until the tab is closed. */
const place = "millrace.key";

export const keyOfSession = (): string | null => sessionStorage.getItem(place);

/** Keeps a key for this tab, if the server knows it; throws an {@link ApiError} if not. */
export async function signIn(key: string): Promise<void> {
  await clientFor(key).call("GET", "/v1/endpoints");
  sessionStorage.setItem(place, key);
}

/**
 * Signs in with the token of a one-time link, if the page was opened by one. The token is in the fragment, which no
 * browser sends, and leaves the address at once.
 */
export async function signInByLink(): Promise<void> {
  const token = /^#once=(.+)$/.exec(location.hash)?.[1];
  if (token === undefined) return;
  history.replaceState(null, "", location.pathname);
  const headers = { authorization: `Once ${token}` };
  const reply = await fetch("/sign-in/once", { method: "POST", headers }).catch(() => undefined);
  if (reply?.ok) sessionStorage.setItem(place, ((await reply.json()) as { key: string }).key);
  else if (keyOfSession() === null) history.replaceState(null, "", "/sign-in?why=link");
}

export const signOut = (): void => sessionStorage.removeItem(place);

const clientFor = (key: string, onIgnored: (fields: string) => void = () => {}) =>
  createClient({ url: location.origin, key, onIgnored });

/** The client of the key that is signed in. Whoever has none is sent to the sign-in page by the router. */
export const client = () => clientFor(keyOfSession() ?? "");

/** Whether an error says that the key does not count (any more). */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

/** Whether an error is the server's no: asking once more would not help, as it may where a server is being started. */
export const saysNo = (error: unknown): boolean => error instanceof ApiError && error.status < 500;

export const get = <T>(path: string): Promise<T> => client().call<T>("GET", path);
/** A reply as the text that it is. */
export const getText = async (path: string): Promise<string> => (await client().open(path)).text();
/** Sends a change to the server. */
export type Send = <T>(method: "POST" | "PATCH" | "PUT" | "DELETE", path: string, body?: unknown) => Promise<T>;
/** Sends changes, and tells the names of fields that the server did not know and ignored. */
export const sender =
  (onIgnored?: (fields: string) => void): Send =>
  (method, path, body) =>
    clientFor(keyOfSession() ?? "", onIgnored).call(method, path, body);
export const send = sender();
