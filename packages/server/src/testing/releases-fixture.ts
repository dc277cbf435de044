import type { Endpoint } from "../domain/endpoint.js";
import type { ApiKey } from "../domain/key.js";
import type { Needs } from "../operations/needs.js";
import { releaseNumbers, showRelease } from "../operations/releases.js";

type Shown = NonNullable<Awaited<ReturnType<typeof showRelease>>>;

/** All versions of an endpoint, the newest first. */
export async function showReleases(parts: Needs<"registry">, caller: ApiKey, endpoint: Endpoint): Promise<Shown[]> {
  const shown = await Promise.all(releaseNumbers(endpoint).map((n) => showRelease(parts, caller, endpoint, n)));
  return shown.filter((each) => each !== undefined);
}
