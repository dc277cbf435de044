import type { ApiKey } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { pageQuery } from "../../queries.js";

/** What the key that is signed in may not do, before somebody tries it. */
export function KeyNote() {
  const { data: key } = useQuery(pageQuery<ApiKey>("/v1/apikeys/self"));
  if (key === undefined || key.scope === "all") return null;
  return (
    <p className="note">
      {key.scope === "read"
        ? "This key may only read: changes are refused, and so are jobs."
        : "This key is for the jobs of chosen endpoints: other pages are refused."}
    </p>
  );
}
