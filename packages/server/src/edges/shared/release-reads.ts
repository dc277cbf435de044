import { FairLine } from "../../domain/fair-line.js";
import { limits } from "../../limits/index.js";

/** Reads of versions, which hold whole environments: a few at a time for all callers. */
export const releaseReads = new FairLine(limits.releaseReadsMax);
