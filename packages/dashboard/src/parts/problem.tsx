import { ApiError } from "@millrace/api/client";
import { Link } from "@tanstack/react-router";
import { whyOf } from "./why.js";

/** Something that could not be shown: what, why, and again. The rest of the page lives on. */
export function Problem({
  what,
  error,
  again,
}: {
  readonly what: string;
  readonly error: Error;
  readonly again: () => void;
}) {
  return (
    <section role="alert" className="problem">
      <h2>{what} cannot be shown</h2>
      <p>{whyOf(error)}</p>
      {error instanceof ApiError && (
        <p className="note">
          {error.code} · request {error.requestId}
        </p>
      )}
      <button type="button" onClick={again}>
        Try again
      </button>
    </section>
  );
}

/** The page of a URL that leads nowhere. */
export const NotFound = () => (
  <main className="lost">
    <h1>There is no such page</h1>
    <p>
      <Link to="/">All endpoints</Link>
    </p>
  </main>
);
