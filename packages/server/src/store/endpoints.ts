import type { Endpoint, EndpointSettings } from "../domain/endpoints/endpoint.js";
import type { Release } from "../domain/endpoints/release.js";
import type { TemplateSettings } from "../domain/endpoints/template.js";

/** What makes a new version of an endpoint. */
export interface NewRelease {
  readonly template: TemplateSettings;
  readonly madeAt: number;
  readonly rollbackOf?: number;
}

export interface EndpointStore {
  /** With its first version. */
  create(endpoint: {
    id: string;
    ownerNo: number;
    settings: EndpointSettings;
    template: TemplateSettings;
    createdAt: number;
  }): Promise<Endpoint>;
  /** `release` makes a new version. Any save ends crash-loop pauses. */
  save(no: number, settings: EndpointSettings, release: NewRelease | undefined): Promise<void>;
  remove(no: number, now: number): Promise<void>;
  /** All that are not deleted, or whose jobs or workers have not ended. */
  all(): Promise<Endpoint[]>;
  /** Those of these ids that are there and not deleted. */
  existing(ids: readonly string[]): Promise<string[]>;
  /** Notes how a start went, where the endpoint is of the present version still. */
  noteStart(no: number, note: TriedStart): Promise<void>;
  /** One of its versions, where it is kept. */
  release(no: number, n: number): Promise<Release | undefined>;
}

/** How the last start went: how many have failed in a row. */
export interface StartNote {
  readonly failedStarts: number;
  readonly at: number;
  readonly verdict?: string | undefined;
}

export interface TriedStart extends StartNote {
  /** The endpoint's version then, and the version that was tried: a start that did not fail proves it. */
  readonly present: number;
  readonly tried: number;
  /** It is not tried any more. */
  readonly isHeld: boolean;
}
