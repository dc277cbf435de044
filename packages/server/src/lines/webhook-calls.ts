import { limits } from "../limits/index.js";

/** A webhook call's owner and host. */
export interface Call {
  readonly ownerNo: number;
  readonly host: string;
}

interface Owner {
  calls: number;
  silentCalls: number;
  readonly hosts: Map<string, number>;
}

/**
 * Bounds concurrent webhook calls. An owner may have as many as are still free, so that one more owner always finds
 * room: one owner alone makes half of all calls, two make a third each. In the same way, an owner's silent hosts leave
 * room for its other hosts.
 */
export class WebhookCalls {
  readonly #callsMax: number;
  #calls = 0;
  readonly #owners = new Map<number, Owner>();
  readonly #hosts = new Map<string, number>();
  /**
   * Until when a host counts as silent because its last call was not answered; the most recently called host is last.
   */
  readonly #silentUntil = new Map<string, number>();

  constructor({ callsMax = limits.webhookConcurrency }: { callsMax?: number } = {}) {
    this.#callsMax = callsMax;
  }

  mayCall(call: Call, now: number): boolean {
    const { ownerNo, host } = call;
    const owner = this.#owners.get(ownerNo);
    const calls = owner?.calls ?? 0;
    const room = this.#callsMax - this.#calls - calls;
    const held = owner?.hosts.get(host) ?? 0;
    // of a host that several owners call, too, one owner leaves as many as it has
    if (room <= 0 || (this.#hosts.get(host) ?? 0) + held >= limits.webhookConcurrencyPerHost) return false;
    if (this.#isSilent(call, now)) {
      return held < limits.webhookConcurrencyPerSilentHost && (owner?.silentCalls ?? 0) < room;
    }
    // when many hosts are to be called, each gets one call
    return held === 0 || calls < room;
  }

  /** Counts a call. The returned function ends it, and notes whether the host was silent. */
  enter(call: Call, now: number): (end: { isSilent: boolean; now: number }) => void {
    const { ownerNo, host } = call;
    const owner = this.#owners.get(ownerNo) ?? { calls: 0, silentCalls: 0, hosts: new Map() };
    const silent = Number(this.#isSilent(call, now));
    this.#owners.set(ownerNo, owner);
    this.#calls++;
    owner.calls++;
    owner.silentCalls += silent;
    add(owner.hosts, host, 1);
    add(this.#hosts, host, 1);
    return (end) => {
      this.#calls--;
      owner.calls--;
      owner.silentCalls -= silent;
      add(owner.hosts, host, -1);
      add(this.#hosts, host, -1);
      if (owner.calls === 0) this.#owners.delete(ownerNo);
      this.#note(call, end);
    };
  }

  /** Sorts calls into the order in which they should be made: owners take turns, and so do the hosts of each. */
  inTurns<C extends Call>(calls: readonly C[]): C[] {
    const ofOwners = grouped(calls, ({ ownerNo }) => this.#owners.get(ownerNo)?.calls ?? 0, "ownerNo");
    return interleaved(
      ofOwners.map((own) => {
        const held = this.#owners.get(own[0]!.ownerNo)?.hosts;
        return interleaved(grouped(own, ({ host }) => held?.get(host) ?? 0, "host"));
      }),
    );
  }

  #isSilent({ ownerNo, host }: Call, now: number): boolean {
    return now < (this.#silentUntil.get(keyOf(ownerNo, host)) ?? 0);
  }

  #note({ ownerNo, host }: Call, { isSilent, now }: { isSilent: boolean; now: number }): void {
    const key = keyOf(ownerNo, host);
    this.#silentUntil.delete(key);
    if (!isSilent) return;
    this.#silentUntil.set(key, now + limits.webhookSilenceKeptMs);
    for (const [oldest, until] of this.#silentUntil) {
      if (now < until && this.#silentUntil.size <= limits.webhookSilentHostsMax) break;
      this.#silentUntil.delete(oldest);
    }
  }
}

const keyOf = (ownerNo: number, host: string): string => `${ownerNo} ${host}`;

function add(counts: Map<string, number>, key: string, n: number): void {
  const count = (counts.get(key) ?? 0) + n;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}

/** Groups calls by owner or by host; the groups with the fewest calls come first. */
function grouped<C extends Call>(calls: readonly C[], callsOf: (call: C) => number, by: keyof Call): C[][] {
  const lists = new Map<string | number, C[]>();
  for (const call of calls) {
    const list = lists.get(call[by]);
    if (list) list.push(call);
    else lists.set(call[by], [call]);
  }
  return [...lists.values()].sort((a, b) => callsOf(a[0]!) - callsOf(b[0]!));
}

/** The first of each list, then the second of each, and so on. */
function interleaved<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map(({ length }) => length));
  const mixed: T[] = [];
  for (let n = 0; n < longest; n++) for (const list of lists) if (n < list.length) mixed.push(list[n]!);
  return mixed;
}
