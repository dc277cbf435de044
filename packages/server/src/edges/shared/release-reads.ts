import type { ApiKey } from "../../domain/access/key.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { FairLine } from "../../domain/fair-line.js";
import { limits } from "../../limits/index.js";
import { showRelease } from "../../operations/endpoints/releases.js";
import type { Parts } from "../../operations/needs.js";
import { turns } from "../../turns.js";

const reads = new FairLine(limits.releaseReadsMax);

/**
 * A version of an endpoint as the caller sees it; undefined if it is no longer kept. Versions hold whole environments:
 * one is read at a time for all callers, each in a turn of its own.
 */
export const readRelease = (parts: Parts, caller: ApiKey, endpoint: Endpoint, version: number) =>
  reads.do(caller.ownerNo, async () => {
    if (turns.isOver) await turns.take([caller.ownerNo, "releases"]);
    return showRelease(parts, caller, endpoint, version);
  });
