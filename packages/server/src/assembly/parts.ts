import { FairLine } from "../domain/fair-line.js";
import { limits } from "../limits/index.js";
import { gateTallies } from "../lines/gate-tallies.js";
import { HeldCalls } from "../lines/held-calls.js";
import { lending } from "../lines/lent-texts.js";
import { News } from "../lines/news.js";
import { QueueRoom } from "../lines/queue-room.js";
import type { TakeLine } from "../lines/take-line.js";
import { hideOnHost } from "../operations/access/access-secret.js";
import type { Parts } from "../operations/needs.js";
import type { Provider } from "../provider.js";
import type { Stores } from "../store/index.js";
import { openGate } from "./gate.js";
import { takeLines } from "./take-lines.js";

/** What differs between the service, a test's scene and the simulation. */
export interface World
  extends Pick<Parts, "clock" | "ids" | "bell" | "registry" | "vault" | "emit" | "draining" | "here" | "bootstrapKey"> {
  readonly stores: Stores;
  readonly isTraced?: boolean;
  readonly provider: Pick<Provider, "hide">;
  /** The lines of workers that wait for jobs, by endpoint, for callers that look at them too. */
  readonly lines?: Map<number, TakeLine>;
}

/** Connects what operations, loops and edges depend on: there is no other place where this is done. */
export function connectParts(world: World): Parts {
  const { stores, provider, lines = new Map(), ...parts } = world;
  const { clock, bell, registry, emit, here } = parts;
  const gate = openGate(clock, bell, registry, stores.shared !== undefined);
  const isBalanced = (no: number) => registry.endpointByNo(no)?.settings.type === "LB";
  const news = new News(clock, (id) => (registry.endpoint(id) ?? registry.pod(id))?.ownerNo);
  registry.onPut(({ id, ownerNo }) => news.note(id, "endpoint", ownerNo));
  clock.onGap(() => registry.hearAll(clock.now())); // we did not listen, so workers' silence means nothing
  return {
    ...stores,
    ...parts,
    ...lending(clock, stores.reader),
    isTraced: world.isTraced === true,
    tallies: gateTallies(stores.tallies, gate, isBalanced),
    gate,
    replays: new FairLine(),
    purges: new FairLine(),
    changes: new FairLine(limits.changesAtOnce),
    queueRoom: new QueueRoom(clock),
    news,
    heldCalls: new HeldCalls(() => bell.ring("calls")),
    line: takeLines(lines, { jobs: stores.jobs, registry, bell, clock, emit }),
    hideInLog: hideOnHost({ registry, here }, (workerId, secret) => provider.hide(workerId, secret)),
  };
}
