import type { ApiKey } from "../domain/access/key.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { releaseNumbers } from "../domain/endpoints/release.js";
import { showRelease } from "../operations/endpoints/releases.js";
import type { Needs } from "../operations/needs.js";

type Shown = NonNullable<Awaited<ReturnType<typeof showRelease>>>;

/** All versions of an endpoint, newest first. */
export async function showReleases(parts: Needs<"registry">, caller: ApiKey, endpoint: Endpoint): Promise<Shown[]> {
  const shown = await Promise.all(releaseNumbers(endpoint).map((n) => showRelease(parts, caller, endpoint, n)));
  return shown.filter((each) => each !== undefined);
}
