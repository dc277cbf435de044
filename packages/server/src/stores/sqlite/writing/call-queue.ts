import { limits } from "../../../limits/index.js";

/** A call that waits for its group. */
export interface Waiting<Call> {
  /** The approximate number of bytes it writes, without its pieces. */
  readonly bytes: number;
  /** Calls of one endpoint keep their order; calls without an endpoint have no order. */
  readonly endpointNo: number | undefined;
  /** The pieces of its large texts, which must be on disk before the call is written. */
  readonly pieces?: { readonly left: Call[]; onTheWay: number };
}

type AnyCall = Waiting<{ readonly bytes: number }>;

export const isLarge = ({ bytes, pieces }: AnyCall): boolean => bytes >= limits.largeCallBytes || pieces !== undefined;

const bytesOf = ({ bytes, pieces }: AnyCall): number =>
  bytes + (pieces?.left.reduce((sum, piece) => sum + piece.bytes, 0) ?? 0);

/**
 * Calls in the order they came. Small calls overtake the large ones of other endpoints, since a large text takes tens of
 * milliseconds to write; endpoints with large calls take turns.
 */
export class CallQueue<Call extends Waiting<Call>> {
  #calls: Call[] = [];
  #large = 0;
  #bytes = 0;
  /** When each endpoint last had its turn. */
  readonly #turns = new Map<number | undefined, number>();
  #turn = 0;

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
    this.#bytes += bytesOf(call);
    if (isLarge(call)) this.#large++;
  }

  /** Moves the small calls that fit into a group. */
  moveSmall(group: Call[]): void {
    const passed = new Set<number>();
    const left: Call[] = [];
    let bytes = group.reduce((sum, call) => sum + call.bytes, 0);
    let at = 0;
    for (; at < this.#calls.length && group.length < limits.groupCallsMax; at++) {
      const call = this.#calls[at] as Call;
      const { endpointNo } = call;
      if (isLarge(call) || (endpointNo !== undefined && passed.has(endpointNo))) {
        if (endpointNo !== undefined) passed.add(endpointNo);
        left.push(call);
        continue;
      }
      if (group.length > 0 && bytes + call.bytes > limits.groupBytesMax) break;
      bytes += call.bytes;
      this.#bytes -= call.bytes;
      group.push(call);
    }
    if (left.length === 0) this.#calls.splice(0, at);
    else this.#calls = left.concat(this.#calls.slice(at));
  }

  /** Moves large calls, and pieces of others, into a group: at least one, and up to `bytesMax`. */
  moveLarge(group: Call[], bytesMax: number): void {
    const lines = this.#largeLines();
    const gone = new Set<Call>();
    let bytes = 0;
    while (lines.length > 0 && group.length < limits.groupCallsMax) {
      const line = lines.shift() as Call[];
      const call = line[0] as Call;
      const piece = call.pieces?.left[0];
      if (!piece && call.pieces && call.pieces.onTheWay > 0) continue;
      const next = piece ?? call;
      if (bytes > 0 && bytes + next.bytes > bytesMax) break;
      if (piece && call.pieces) {
        call.pieces.left.shift();
        call.pieces.onTheWay++;
      } else {
        line.shift();
        gone.add(call);
      }
      group.push(next);
      bytes += next.bytes;
      this.#turns.set(call.endpointNo, ++this.#turn);
      if (line.length > 0) lines.push(line);
    }
    this.#bytes -= bytes;
    this.#drop(gone);
  }

  /** Removes a call whose pieces could not be written; false if it has left the queue already. */
  remove(call: Call): boolean {
    const isHere = this.#calls.includes(call);
    if (isHere) {
      this.#bytes -= bytesOf(call);
      this.#drop(new Set([call]));
    }
    return isHere;
  }

  /** Removes all calls. */
  clear(): Call[] {
    this.#large = 0;
    this.#bytes = 0;
    return this.#calls.splice(0);
  }

  /**
   * The large calls per endpoint that have no small call before them; the endpoint that waited longest for its turn
   * comes first.
   */
  #largeLines(): Call[][] {
    const lines = new Map<number | undefined, Call[]>();
    const behindSmall = new Set<number>();
    for (const call of this.#calls) {
      const { endpointNo } = call;
      if (endpointNo !== undefined && behindSmall.has(endpointNo)) continue;
      if (!isLarge(call)) {
        if (endpointNo !== undefined) behindSmall.add(endpointNo);
        continue;
      }
      const line = lines.get(endpointNo);
      if (line) line.push(call);
      else lines.set(endpointNo, [call]);
    }
    const turnOf = (endpointNo: number | undefined) => this.#turns.get(endpointNo) ?? 0;
    return [...lines].sort(([a], [b]) => turnOf(a) - turnOf(b)).map(([, line]) => line);
  }

  #drop(gone: ReadonlySet<Call>): void {
    if (gone.size === 0) return;
    this.#calls = this.#calls.filter((call) => !gone.has(call));
    this.#large -= gone.size;
    if (this.#large === 0) this.#turns.clear();
  }
}
