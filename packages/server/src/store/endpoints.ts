import type { Endpoint, EndpointSettings } from "../domain/endpoints/endpoint.js";
import type { Release } from "../domain/endpoints/release.js";
import type { TemplateSettings } from "../domain/endpoints/template.js";

/** The content of a new version of an endpoint. */
export interface NewRelease {
  readonly template: TemplateSettings;
  readonly madeAt: number;
  readonly rollbackOf?: number;
}

export interface EndpointStore {
  /** Creates an endpoint with its first version. */
  create(endpoint: {
    id: string;
    ownerNo: number;
    settings: EndpointSettings;
    template: TemplateSettings;
    createdAt: number;
  }): Promise<Endpoint>;
  /** Saves the settings, and makes a new version if `release` is given. Any save ends crash-loop pauses. */
  save(no: number, settings: EndpointSettings, release: NewRelease | undefined): Promise<void>;
  remove(no: number, now: number): Promise<void>;
  /** All endpoints that are not deleted, or that still have jobs, workers or deliveries. */
  all(): Promise<Endpoint[]>;
  /** Of these deleted endpoints, returns those that still have jobs, workers or deliveries. */
  needed(nos: readonly number[]): Promise<number[]>;
  /** The existing endpoints with these numbers, deleted or not. */
  some(nos: readonly number[]): Promise<Endpoint[]>;
  /** Of these ids, returns the ids of endpoints that exist and are not deleted. */
  existing(ids: readonly string[]): Promise<string[]>;
  /** Records how a start went, if the endpoint still has the version of that time. */
  noteStart(no: number, note: TriedStart): Promise<void>;
  /** One of its versions, if it is still kept. */
  release(no: number, n: number): Promise<Release | undefined>;
}

/** The result of the last start, and how many have failed in a row. */
export interface StartNote {
  readonly failedStarts: number;
  readonly at: number;
  readonly verdict?: string | undefined;
  /** True if no earlier version could do better than the one that was tried. */
  readonly isAlone?: boolean;
}

export interface TriedStart extends StartNote {
  /** The endpoint's version at the time, and the version that was tried: a start that succeeds proves it. */
  readonly present: number;
  readonly tried: number;
  /** True if this version is not tried any more. */
  readonly isHeld: boolean;
}
