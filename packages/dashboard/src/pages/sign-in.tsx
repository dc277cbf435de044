import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { Mark } from "../parts/frame/mark.js";
import { isSignedOut, signIn } from "../session.js";

const route = getRouteApi("/sign-in");

/** A page of this app: an address elsewhere would lead whoever has just signed in to somebody else's page. */
const ownPath = (to: string | undefined): string => (to !== undefined && /^\/(?![/\\])/.test(to) ? to : "/");

/** Asks for an API key, which is kept for this tab alone. */
export function SignIn() {
  const { to, why } = route.useSearch();
  const navigate = useNavigate();
  const [trouble, setTrouble] = useState<string>();
  const [isBusy, setBusy] = useState(false);

  async function enter(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get("key")).trim();
    setBusy(true);
    setTrouble(undefined);
    try {
      await signIn(key);
      await navigate({ href: ownPath(to), replace: true });
    } catch (error) {
      setTrouble(
        isSignedOut(error)
          ? "This server does not know that key. It is in the file api-key of the server's data directory."
          : `The server does not answer: ${(error as Error).message}`,
      );
      setBusy(false);
    }
  }

  return (
    <main className="sign-in">
      <title>Sign in · Millrace</title>
      <form onSubmit={(event) => void enter(event)}>
        <h1>
          <Mark /> Millrace
        </h1>
        {why === "link" && <p role="status">This link has already been used or has expired: sign in with a key.</p>}
        <input type="text" name="username" autoComplete="username" value="API key" readOnly hidden />
        <label htmlFor="key">API key</label>
        <input
          id="key"
          name="key"
          type="password"
          autoComplete="current-password"
          placeholder="mr_…"
          required
          aria-describedby="key-note"
          aria-invalid={trouble !== undefined}
        />
        <p id="key-note" className="note">
          An admin makes keys; the first one is in the file api-key of the server's data directory. A key is kept until
          you close this tab, and sent to this server alone.
        </p>
        {trouble && (
          <p role="alert" className="trouble">
            {trouble}
          </p>
        )}
        <button type="submit" className="primary" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
