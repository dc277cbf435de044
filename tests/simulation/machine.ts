import type { Gpu } from "../../packages/server/src/domain/hosts/gpu.js";
import type { HostFacts } from "../../packages/server/src/domain/hosts/host.js";
import { plainHost } from "../../packages/server/src/testing/facts-fixture.js";

/** The resources of a machine. */
export interface MachineShape {
  /** The names of its GPUs. */
  readonly gpus: readonly string[];
  readonly enforced: boolean;
  readonly cpus: number;
  readonly memoryMib: number;
}

/** How many GPUs of each type a machine has that is large enough for every worker. */
const manyGpus = 12;

const gpu = (name: string, index: number): Gpu => ({
  id: `GPU-${index}`,
  index,
  name,
  memoryMib: 24_576,
  driver: "550.54.15",
});

/** The machine's present resources, with GPUs that are lost and come back. It outlives the servers. */
export class Machine {
  #gpus: readonly Gpu[];
  #shape: Pick<HostFacts, "gpusEnforced" | "cpus" | "memoryMib">;
  readonly #off = new Map<string, number>();
  #seenSince: number;
  #isBlind = false;
  readonly #now: () => number;
  readonly #onChange: () => void;
  /** Whether workers may have to wait for a place. */
  readonly isTight: boolean;

  constructor(shape: MachineShape | undefined, now: () => number, onChange: () => void) {
    const { gpus, enforced, cpus, memoryMib } = shape ?? { ...plainHost, gpus: [], enforced: false };
    this.#gpus = gpus.map(gpu);
    this.#shape = { gpusEnforced: enforced, cpus, memoryMib };
    this.isTight = shape !== undefined;
    this.#now = now;
    this.#seenSince = now();
    this.#onChange = onChange;
  }

  /** When the loss of this GPU could be known; undefined if it is there, or if the driver does not answer. */
  gpuLostAt = (id: string): number | undefined => {
    const lostAt = this.#off.get(id);
    return lostAt === undefined || this.#isBlind ? undefined : Math.max(lostAt, this.#seenSince);
  };

  facts = (): HostFacts => ({
    ...plainHost,
    ...this.#shape,
    gpus: this.#isBlind ? [] : this.#gpus.filter(({ id }) => !this.#off.has(id)),
    ...(this.#isBlind ? { gpusUnseen: true } : {}),
  });

  /** Loses a GPU; the returned function brings it back. */
  loseGpu(pick: number): () => void {
    const found = this.#gpus[pick % Math.max(1, this.#gpus.length)];
    if (!found) return () => {};
    this.#off.set(found.id, this.#now());
    this.#onChange();
    return () => {
      if (this.#off.delete(found.id)) this.#onChange();
    };
  }

  /** Sets whether the driver does not answer: then nothing is known of any GPU. */
  blind(isBlind: boolean): void {
    this.#isBlind = isBlind;
    this.#seenSince = this.#now();
    this.#onChange();
  }

  /** Makes everything work again. */
  heal(): void {
    this.#off.clear();
    this.blind(false);
  }

  /** Gives it enough resources for every worker. */
  grow(): void {
    const names = [...new Set(this.#gpus.map(({ name }) => name))];
    const more = names.flatMap((name) => Array.from({ length: manyGpus }, () => name));
    this.#gpus = [...this.#gpus.map(({ name }) => name), ...more].map(gpu);
    this.#shape = { ...this.#shape, cpus: 256, memoryMib: 1_048_576 };
    this.#onChange();
  }
}
