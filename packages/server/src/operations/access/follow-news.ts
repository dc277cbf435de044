import { type ApiKey, isVisible } from "../../domain/access/key.js";
import type { NewsItem } from "../../lines/news.js";
import type { Needs } from "../needs.js";

/** What a caller is told of a change. */
export type ShownNews = Pick<NewsItem, "endpointId" | "what">;

/**
 * Tells a caller what changes of the endpoints and pods that its key sees, until the returned function is called. `much`:
 * so much has changed that it is not told one by one.
 */
export function followNews(
  needs: Needs<"news" | "registry">,
  caller: ApiKey,
  tell: (items: readonly ShownNews[] | "much") => void,
): () => void {
  return needs.news.follow((items) => {
    if (items === "much") return tell(items);
    const seen = items.filter((item) => isSeen(needs, caller, item));
    if (seen.length > 0) tell(seen.map(({ endpointId, what }) => ({ endpointId, what })));
  });
}

function isSeen({ registry }: Needs<"registry">, caller: ApiKey, { endpointId, ownerNo }: NewsItem): boolean {
  const present = registry.key(caller.hash);
  if (!present) return false;
  const endpoint = registry.endpoint(endpointId) ?? registry.pod(endpointId);
  // one that was just deleted is nobody's any more
  return isVisible(present, endpoint) || (ownerNo === present.ownerNo && present.scope.kind !== "endpoints");
}
