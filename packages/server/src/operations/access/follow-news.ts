import { type ApiKey, maySee } from "../../domain/access/key.js";
import { limits } from "../../limits/index.js";
import type { NewsItem } from "../../lines/news.js";
import type { Needs } from "../needs.js";
import { isBound } from "./visible.js";

/**
 * Tells a caller what changes of the endpoints, pods and webhooks that its key sees, until the returned function is called. `much`:
 * more has changed than is known or told one by one.
 */
export function followNews(
  needs: Needs<"news" | "registry">,
  caller: ApiKey,
  tell: (items: readonly NewsItem[] | "much") => void,
): () => void {
  return needs.news.follow(caller.ownerNo, (items) => {
    const present = needs.registry.key(caller.hash);
    if (!present) return;
    // a key of chosen endpoints is not told that much has changed of the others
    if (items === "much" || (items.length > limits.newsItemsMax && !isBound(present))) return tell("much");
    const seen = items.filter(({ endpointId }) =>
      endpointId === undefined ? !isBound(present) : maySee(present.scope, endpointId),
    );
    if (seen.length > 0) tell(seen);
  });
}
