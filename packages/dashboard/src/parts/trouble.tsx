import { ApiError } from "@millrace/api/client";
import { whyOf } from "./why.js";

/** What the server said no to, if it did. */
export const Trouble = ({ error }: { readonly error: Error | null | undefined }) =>
  error ? (
    <p role="alert" className="trouble">
      {whyOf(error)}
      {error instanceof ApiError && <span className="note"> {error.code}</span>}
    </p>
  ) : null;
