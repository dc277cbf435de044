import { limits } from "../../limits/index.js";

/** A call that waits for its group. */
export interface Waiting {
  /** About how many bytes it carries. */
  readonly bytes: number;
  /** Calls of one endpoint keep their order; a call without an endpoint has none to keep. */
  readonly endpointNo: number | undefined;
}

export const isLarge = ({ bytes }: Waiting): boolean => bytes >= limits.largeCallBytes;

/**
 * Calls in the order they came. Small ones leave before the large calls of other endpoints: writing a large text takes tens
 * of milliseconds.
 */
export class CallQueue<Call extends Waiting> {
  #calls: Call[] = [];
  #large = 0;
  #bytes = 0;

  get length(): number {
    return this.#calls.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get hasLarge(): boolean {
    return this.#large > 0;
  }

  push(call: Call): void {
    this.#calls.push(call);
    this.#bytes += call.bytes;
    if (isLarge(call)) this.#large++;
  }

  /** Moves the small calls that fit into a group. */
  moveSmall(group: Call[]): void {
    const passed = new Set<number>();
    this.#move(group, (call) => {
      if (isLarge(call)) {
        if (call.endpointNo !== undefined) passed.add(call.endpointNo);
        return false;
      }
      return call.endpointNo === undefined || !passed.has(call.endpointNo);
    });
  }

  /** Moves the large calls that fit into a group: one at least where the group is empty. */
  moveLarge(group: Call[]): void {
    // a small call of the same endpoint that came before goes first
    const waiting = new Set<number | undefined>();
    this.#move(group, (call) => {
      if (isLarge(call) && !waiting.has(call.endpointNo)) return true;
      if (call.endpointNo !== undefined) waiting.add(call.endpointNo);
      return false;
    });
  }

  /** Takes all calls out. */
  clear(): Call[] {
    this.#large = 0;
    this.#bytes = 0;
    return this.#calls.splice(0);
  }

  #move(group: Call[], mayGo: (call: Call) => boolean): void {
    const left: Call[] = [];
    let bytes = group.reduce((sum, call) => sum + call.bytes, 0);
    let at = 0;
    for (; at < this.#calls.length && group.length < limits.groupCallsMax; at++) {
      const call = this.#calls[at] as Call;
      if (!mayGo(call)) {
        left.push(call);
        continue;
      }
      if (group.length > 0 && bytes + call.bytes > limits.groupBytesMax) break;
      bytes += call.bytes;
      this.#bytes -= call.bytes;
      group.push(call);
      if (isLarge(call)) this.#large--;
    }
    if (left.length === 0) this.#calls.splice(0, at);
    else this.#calls = left.concat(this.#calls.slice(at));
  }
}
