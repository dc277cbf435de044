import { realTime } from "../../clock.js";
import { busy } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Connection } from "./connection/connection.js";
import type { Connections } from "./connection/connections.js";
import { isConflict, isLost, worded } from "./connection/failures.js";
import { LogFlushes } from "./log-flushes.js";

/** The connection and the tally row that a group of calls runs with. */
export interface Group {
  readonly connection: Connection;
  /** The tally row that this group may write; no other group writes it at the same time. */
  readonly lane: number;
  /** The call was sent before and its connection broke, so it may be committed already. Such a call runs alone. */
  readonly again: boolean;
}

/** A kind of write: how calls of this kind run together in one commit. */
export interface Verb<Args extends readonly unknown[], Result> {
  run(group: Group, calls: readonly Args[]): Promise<Result[]>;
  /** The maximum number of calls in a group; 1 means that each runs alone. */
  readonly callsMax?: number;
  /** Two calls with the same key are never in one group: the second must see what the first has done. */
  readonly key?: (...args: Args) => string;
  /** A group locks one row per call, in the order of their keys, so that two groups cannot deadlock. */
  readonly inKeyOrder?: boolean;
}

interface Call {
  readonly args: readonly unknown[];
  readonly key: string | undefined;
  readonly bytes: number;
  readonly giveUpAt: number;
  again: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

// biome-ignore lint/suspicious/noExplicitAny: each store types its own verbs; the writer only calls them
type AnyVerb = Verb<any, unknown>;

/** Waiting calls of one verb. */
interface Queue {
  readonly verb: AnyVerb;
  readonly calls: Call[];
}
type Queues = Map<AnyVerb, Queue>;

/** Large calls of one size, which share a connection at a time. */
class Class {
  readonly queues: Queues = new Map();
  readonly bytesMin: number;
  /** The keys of the group in flight. */
  onTheWay: ReadonlySet<string | undefined> | undefined;

  constructor(bytesMin: number) {
    this.bytesMin = bytesMin;
  }

  /** Whether a call with this key waits or is in flight here. */
  holds(verb: AnyVerb, key: string | undefined): boolean {
    if (key === undefined) return false;
    return this.onTheWay?.has(key) || this.queues.get(verb)?.calls.some((call) => call.key === key) || false;
  }
}

const byKey = ({ key: a = "" }: Call, { key: b = "" }: Call): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Connections for writing, each with one group in flight at a time, while the next group gathers. A promise resolves
 * when its group is committed. A group that fails is retried call by call, so that a bad row fails alone. Large calls
 * are in groups of their own on one connection at a time, and calls of many megabytes on another, which leaves the
 * other connections to small calls. While a call of many megabytes is written, the log is flushed now and then.
 */
export class Lanes {
  readonly #connections: Connections;
  readonly #flushes: LogFlushes;
  readonly #free: number[];
  readonly #size: number;
  /** How much more than its share may wait: workers' reports are refused last. */
  readonly #factor: number;
  readonly #onBack: () => void;
  readonly #small: Queues = new Map();
  /** The largest first. */
  readonly #classes = [new Class(limits.hugeCallBytes), new Class(limits.largeCallBytes)];
  #length = 0;
  #bytes = 0;
  #scheduled = false;
  #away = false;
  #closed = false;
  #idle: (() => void) | undefined;

  constructor(connections: Connections, lanes: readonly number[], factor: number, onBack: () => void) {
    this.#connections = connections;
    this.#flushes = new LogFlushes(connections);
    this.#free = [...lanes];
    this.#size = lanes.length;
    this.#factor = factor;
    this.#onBack = onBack;
  }

  /** Queues a write; refuses it if too much is waiting already. */
  call<Args extends readonly unknown[], Result>(verb: Verb<Args, Result>, args: Args, bytes = 0): Promise<Result> {
    const isFull =
      this.#length >= this.#factor * limits.queuedCallsMax ||
      this.#bytes + bytes > this.#factor * limits.queuedBytesMax;
    if (this.#closed || isFull) return Promise.reject(busy());
    return new Promise<Result>((resolve, reject) => {
      const giveUpAt = realTime.monotonicMs() + this.#factor * limits.databasePatienceMs;
      const key = verb.key?.(...args);
      this.#put({ verb, calls: [] }, { args, key, bytes, giveUpAt, again: false, resolve: resolve as never, reject });
      this.#schedule();
    });
  }

  /** Writes what is queued and accepts no more. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#length > 0 || this.#free.length < this.#size) await new Promise<void>((idle) => (this.#idle = idle));
  }

  #put(queue: Queue, call: Call, first = false): void {
    const queues = this.#queuesOf(queue.verb, call);
    const found = queues.get(queue.verb) ?? queue;
    queues.set(queue.verb, found);
    if (first) found.calls.unshift(call);
    else found.calls.push(call);
    this.#length++;
    this.#bytes += call.bytes;
  }

  /** Where a call waits: with others of its size, or behind a large one with its key, so that they keep their order. */
  #queuesOf(verb: AnyVerb, { key, bytes }: Call): Queues {
    const large =
      this.#classes.find((one) => one.holds(verb, key)) ?? this.#classes.find((one) => bytes >= one.bytesMin);
    return large?.queues ?? this.#small;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  #start(): void {
    while (!this.#away && this.#free.length > 0) {
      const large = this.#classes.find(({ queues, onTheWay }) => queues.size > 0 && !onTheWay);
      const queues = large?.queues ?? this.#small;
      const [queue] = queues.values();
      if (!queue) return;
      const group = this.#nextGroup(queues, queue);
      const lane = this.#free.pop() as number;
      if (large) large.onTheWay = new Set(group.map(({ key }) => key));
      const running = this.#run(queue.verb, group, lane);
      const isHuge = large?.bytesMin === limits.hugeCallBytes;
      void (isHuge ? this.#flushes.during(running) : running).finally(() => {
        if (large) large.onTheWay = undefined;
        this.#free.push(lane);
        if (this.#length > 0) this.#start();
        else if (this.#free.length === this.#size) this.#idle?.();
      });
    }
  }

  /** Takes what fits from a queue, and moves the rest to the end of the round. */
  #nextGroup(queues: Queues, { verb, calls }: Queue): Call[] {
    queues.delete(verb);
    const group: Call[] = [];
    const left: Call[] = [];
    const keys = new Set<string>();
    const callsMax = calls[0]?.again ? 1 : (verb.callsMax ?? limits.groupCallsMax);
    let bytes = 0;
    let at = 0;
    for (; at < calls.length && group.length < callsMax; at++) {
      const call = calls[at] as Call;
      if (group.length > 0 && (call.again || bytes + call.bytes > limits.groupBytesMax)) break;
      if (call.key !== undefined && keys.has(call.key)) {
        left.push(call);
        continue;
      }
      if (call.key !== undefined) keys.add(call.key);
      bytes += call.bytes;
      group.push(call);
    }
    this.#length -= group.length;
    this.#bytes -= bytes;
    const rest = left.concat(calls.slice(at));
    if (rest.length > 0) queues.set(verb, { verb, calls: rest });
    if (verb.inKeyOrder) group.sort(byKey);
    return group;
  }

  async #run(verb: AnyVerb, group: readonly Call[], lane: number): Promise<void> {
    const again = group[0]?.again === true;
    try {
      const results = await this.#connections.lend((connection) =>
        verb.run(
          { connection, lane, again },
          group.map((call) => call.args),
        ),
      );
      group.forEach((call, at) => void call.resolve(results[at]));
    } catch (error) {
      if (isLost(error)) this.#lost(verb, group, error);
      else if (group.length > 1) for (const call of group) await this.#run(verb, [call], lane);
      else if (isConflict(error) && realTime.monotonicMs() < group[0]!.giveUpAt) await this.#run(verb, group, lane);
      else group[0]!.reject(worded(error));
    }
  }

  /** Handles a broken connection: calls that may be sent again wait a while for the next one. */
  #lost(verb: AnyVerb, group: readonly Call[], error: unknown): void {
    for (const call of [...group].reverse()) {
      if (realTime.monotonicMs() > call.giveUpAt) call.reject(worded(error));
      else this.#put({ verb, calls: [] }, Object.assign(call, { again: true }), true);
    }
    if (!this.#away) void this.#wait();
  }

  /** Sends nothing until the database answers again; calls that have waited too long are refused meanwhile. */
  async #wait(): Promise<void> {
    this.#away = true;
    for (;;) {
      await realTime.sleep(limits.reconnectMs);
      this.#refuseLate();
      if (await this.#connections.isBack()) break;
      if (this.#closed && this.#length === 0) break;
    }
    this.#away = false;
    this.#onBack();
    if (this.#length > 0) this.#start();
    else if (this.#free.length === this.#size) this.#idle?.();
  }

  #refuseLate(): void {
    const now = realTime.monotonicMs();
    for (const queues of [this.#small, ...this.#classes.map((large) => large.queues)]) {
      for (const [verb, { calls }] of [...queues]) {
        const left = calls.filter((call) => call.giveUpAt > now);
        for (const call of calls) {
          if (call.giveUpAt > now) continue;
          this.#length--;
          this.#bytes -= call.bytes;
          call.reject(busy());
        }
        if (left.length > 0) queues.set(verb, { verb, calls: left });
        else queues.delete(verb);
      }
    }
  }
}
