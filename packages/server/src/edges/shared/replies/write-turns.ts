import { limits } from "../../../limits/index.js";
import { Turns } from "./turns.js";

const turns = new Turns(limits.lentBytesPerTurn);

/** Resolves when `bytes` of a large reply may be handed to a socket. */
export const turnFor = (bytes: number): Promise<void> | undefined => turns.take(bytes);
