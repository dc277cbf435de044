import type Docker from "dockerode";
import type { ImageSpec } from "../../provider.js";
import { containerOptions, nameOf } from "./container.js";
import { workerLabels } from "./ends.js";
import type { Engine } from "./engine.js";
import { answered, isTaken, said, statusOf } from "./failures.js";
import type { Machine } from "./image.js";

/** The containers of one host's workers in its engine. An engine that hangs counts as away. */
export class Containers {
  readonly #engine: Engine;
  readonly #hostId: string;
  readonly #warn: (message: string) => void;
  #isDiskBounded = true;

  constructor(engine: Engine, hostId: string, warn: (message: string) => void) {
    this.#engine = engine;
    this.#hostId = hostId;
    this.#warn = warn;
  }

  of = (workerId: string): Docker.Container => this.#engine.docker.getContainer(nameOf(workerId));

  /** Waits for an engine's answer. */
  #call = <T>(asked: Promise<T>): Promise<T> => answered(asked, this.#engine.host);

  /** The engine's facts about a worker's container; undefined if there is none. */
  async find(workerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await this.#call(this.of(workerId).inspect());
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  /** Makes a worker's container with its disk limit. An engine not set up for such limits reveals that only here. */
  async make(spec: ImageSpec, machine: Machine): Promise<void> {
    const boundsDisks = machine.boundsDisks && this.#isDiskBounded;
    if (spec.diskGb && !boundsDisks) this.#noteUnbounded();
    try {
      await this.#makeAnew(spec, { ...machine, boundsDisks });
    } catch (error) {
      if (!spec.diskGb || !boundsDisks || !/storage-?opt|quota/i.test(said(error))) throw error;
      this.#noteUnbounded();
      await this.#makeAnew(spec, { ...machine, boundsDisks: false });
    }
  }

  #noteUnbounded(): void {
    if (this.#isDiskBounded)
      this.#warn("this container engine cannot limit what containers write: containerDiskInGb is not enforced");
    this.#isDiskBounded = false;
  }

  /** A container that was made and never started is removed first, because it has another secret. */
  async #makeAnew(spec: ImageSpec, machine: Machine): Promise<void> {
    const { name, ...body } = containerOptions(spec, workerLabels(this.#hostId, spec), machine, this.#engine);
    // the name goes into the URL alone, because URLs are logged and the body holds the environment
    const options = { _query: { name }, _body: body } as Docker.ContainerCreateOptions;
    const create = () => this.#call(this.#engine.docker.createContainer(options));
    try {
      await create();
    } catch (error) {
      if (!isTaken(error)) throw error;
      const there = await this.find(spec.workerId);
      if (there?.State.Running) return;
      await this.destroy(spec.workerId);
      await create();
    }
  }

  start = (workerId: string): Promise<void> => unless([304], this.#call(this.of(workerId).start()));

  /** Sends a signal; false if the container is gone or has ended. */
  async signal(workerId: string, signal: string): Promise<boolean> {
    try {
      await this.#call(this.of(workerId).kill({ signal }));
      // Docker resumes a paused container when it is signalled; other engines do not, and frozen it would not react
      await this.freeze(workerId, false);
      return true;
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      return false;
    }
  }

  /** Pauses or resumes a container; it is no failure if it is in that state already, or does not run. */
  async freeze(workerId: string, isFrozen: boolean): Promise<void> {
    const container = this.of(workerId);
    try {
      await this.#call(isFrozen ? container.pause() : container.unpause());
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      // engines report this differently
      const found = await this.find(workerId);
      if (found?.State.Running && found.State.Paused !== isFrozen) throw error;
    }
  }

  /** Removes a container, even a running one. */
  async destroy(workerId: string): Promise<void> {
    await this.#call(this.of(workerId).remove({ force: true, v: true }));
  }

  /** Removes a container that has ended. */
  remove = (workerId: string): Promise<void> => unless([404, 409], this.#call(this.of(workerId).remove({ v: true })));
}

/** Waits for a call; these statuses do not count as failures. */
async function unless(statuses: readonly number[], asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error;
  });
}
