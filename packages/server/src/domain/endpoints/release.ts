import type { EndpointSettings } from "./endpoint.js";
import type { TemplateSettings } from "./template.js";

/** An endpoint and its template, frozen at the save that made this version. */
export interface Release {
  readonly n: number;
  readonly madeAt: number;
  readonly settings: EndpointSettings;
  readonly template: TemplateSettings;
  /** The version that a rollback brought back. */
  readonly rollbackOf: number | undefined;
  /** When a worker of it first asked for a job. */
  readonly provenAt: number | undefined;
  /** When three of its workers had failed at start before any came up, and why the last one did. */
  readonly heldAt: number | undefined;
  readonly verdict: string | undefined;
}
