/** A worker that waits for a place. */
export interface Waiting {
  readonly no: number;
  readonly ownerNo: number;
  /** How much of the hosts it takes: its GPUs, or 1. */
  readonly size: number;
}

/**
 * The order in which waiting workers are tried: users take turns by what they hold for their weight, and each user's
 * workers go in the order in which they came. With one GPU held by Ada and none by Bob, Bob's first goes before Ada's
 * next; with the weight 3, Ada gets three for each of Bob's.
 */
export function fairPlaces<W extends Waiting>(
  waiting: readonly W[],
  holds: ReadonlyMap<number, number>,
  weightOf: (ownerNo: number) => number,
): W[] {
  const lines = new Map<number, W[]>();
  for (const each of waiting.toSorted((a, b) => a.no - b.no)) {
    const line = lines.get(each.ownerNo);
    if (line) line.push(each);
    else lines.set(each.ownerNo, [each]);
  }
  if (lines.size <= 1) return [...lines.values()].flat();
  const held = new Map([...lines.keys()].map((ownerNo) => [ownerNo, holds.get(ownerNo) ?? 0]));
  const next = new Map([...lines.keys()].map((ownerNo) => [ownerNo, 0]));
  const shareOf = (ownerNo: number) => (held.get(ownerNo) ?? 0) / weightOf(ownerNo);
  const headOf = (ownerNo: number): W | undefined => lines.get(ownerNo)?.[next.get(ownerNo) ?? 0];
  const order: W[] = [];
  for (let left = waiting.length; left > 0; left--) {
    let first: W | undefined;
    for (const ownerNo of lines.keys()) {
      const head = headOf(ownerNo);
      if (!head) continue;
      const isFirst = first === undefined || shareOf(ownerNo) < shareOf(first.ownerNo);
      const isOlder = first !== undefined && shareOf(ownerNo) === shareOf(first.ownerNo) && head.no < first.no;
      if (isFirst || isOlder) first = head;
    }
    if (!first) break;
    order.push(first);
    next.set(first.ownerNo, (next.get(first.ownerNo) ?? 0) + 1);
    held.set(first.ownerNo, (held.get(first.ownerNo) ?? 0) + first.size);
  }
  return order;
}
