import { limits } from "../../limits/index.js";
import type { Endpoint, EndpointSettings } from "./endpoint.js";
import type { TemplateSettings } from "./template.js";

/** An endpoint and its template, frozen at the save that made this version. */
export interface Release {
  readonly n: number;
  readonly madeAt: number;
  readonly settings: EndpointSettings;
  readonly template: TemplateSettings;
  /** The version that this rollback restores. */
  readonly rollbackOf: number | undefined;
  /** When a worker of this version first asked for a job. */
  readonly provenAt: number | undefined;
  /**
   * When the version was held, because three of its workers had failed at start before any succeeded; `verdict` says
   * why.
   */
  readonly heldAt: number | undefined;
  readonly verdict: string | undefined;
}

/** The numbers of the versions that are kept, newest first: the latest, and the last version that started well. */
export function releaseNumbers({ version, provenVersion }: Pick<Endpoint, "version" | "provenVersion">): number[] {
  const last = Array.from({ length: Math.min(version, limits.releasesKept) }, (_, n) => version - n);
  return provenVersion === 0 || last.includes(provenVersion) ? last : [...last, provenVersion];
}
