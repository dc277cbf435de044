import type { Stores } from "../../packages/server/src/store/index.js";
import type { Random } from "../faults/random.js";
import type { Turns } from "./turns.js";

/** Reports a store's call with its result, in the order of the commits. */
// biome-ignore lint/suspicious/noExplicitAny: each verb has its own arguments and result; the ledger names them
export type Saw = (verb: string, args: any[], result: any) => void;

/** The life of the calling server: calls after its death are never made, and earlier ones are never answered. */
export interface Life {
  readonly isOver: boolean;
  /** Called before and after each call: the server may die at that moment. */
  count(): void;
}

const reads = /^(reader|tallies)\.|\.(all|list|due|nextDue|users|keys|read)$/;
const never = new Promise<never>(() => {});

export interface Watch {
  readonly turns: Turns;
  readonly life: Life;
  readonly saw: Saw;
  /** If set, calls are delayed by up to two turns each; writes keep their order. */
  readonly delays: Random | undefined;
}

/** The same stores for one server: each commit is reported, and each call may be the server's last. */
export function watchedStores(stores: Stores, watch: Watch): Stores {
  let lastWrite: Promise<void> = Promise.resolve();
  const held = () => watch.turns.later(watch.delays?.whole(0, 2) ?? 0);

  async function delayed(verb: string, call: () => Promise<unknown>): Promise<unknown> {
    if (!watch.delays) return call();
    if (reads.test(verb)) await held();
    else {
      lastWrite = lastWrite.then(held);
      await lastWrite;
    }
    try {
      return await call();
    } finally {
      await held();
    }
  }

  const isLast = () => {
    if (!watch.life.isOver) watch.life.count();
    return watch.life.isOver;
  };

  const call = async (verb: string, args: unknown[], method: (...args: unknown[]) => Promise<unknown>) => {
    if (isLast()) return never;
    const asked = delayed(verb, async () => {
      const result = await method(...args);
      watch.saw(verb, args, result);
      return result;
    });
    // A dead server gets neither result nor error.
    return watch.turns.during(asked).then(
      (result) => (isLast() ? never : result),
      (error) => (isLast() ? never : Promise.reject(error)),
    );
  };

  const around = (name: string, part: object): object =>
    new Proxy(part, {
      get: (target, verb: string) => {
        const method = Reflect.get(target, verb);
        if (typeof method !== "function") return method;
        return (...args: unknown[]) => call(`${name}.${verb}`, args, method.bind(target));
      },
    });
  const parts = Object.entries(stores).map(([name, part]) => [
    name,
    typeof part === "function" ? part : around(name, part),
  ]);
  return Object.fromEntries(parts) as Stores;
}
