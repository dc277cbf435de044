import type Docker from "dockerode";
import { realTime } from "../../clock.js";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import type { WorkerHandle } from "../../domain/workers/worker.js";
import {
  type ImageSpec,
  type JobSecrets,
  type LogQuery,
  type Provider,
  type Starting,
  StartUnsure,
} from "../../provider.js";
import { readLogFiles } from "../log-files/reading.js";
import { absent, handleOf, sightingOf } from "./container.js";
import { Containers } from "./containers.js";
import { followEnds } from "./ends.js";
import type { Engine } from "./engine.js";
import { answered, away, isAway, said, statusOf, whyNot } from "./failures.js";
import { imagesOf, machineOf } from "./image.js";
import { type Contained, containerLogs, keepContainerLog, secretsIn } from "./logs.js";
import { lastLines } from "./output.js";

const unheard: Starting = { note: () => {}, reached: () => {}, signal: new AbortController().signal };

/** What the provider asks of the service, and tells it. */
export interface DockerOptions {
  readonly jobSecrets?: JobSecrets;
  readonly warn?: (message: string) => void;
}

/**
 * Runs workers as containers of a Docker engine or a compatible one, which other hosts may share. After a container is
 * removed, its log is kept in `logsDir`.
 */
export class DockerProvider implements Provider<ImageSpec> {
  readonly #engine: Engine;
  readonly #logsDir: string;
  readonly #containers: Containers;
  readonly #readyImage: ReturnType<typeof imagesOf>;
  readonly #listeners = new Set<(workerId: string) => void>();
  readonly #ends: ReturnType<typeof followEnds>;
  /**
   * One start per worker at a time: while an engine makes a container, it neither finds it nor lets it be made again.
   */
  readonly #starting = new Map<string, Promise<WorkerHandle>>();
  /** Workers that we killed. Any other killed worker ran out of memory, or was killed by somebody else. */
  readonly #killed = new Set<string>();
  /** Secrets of jobs hidden from the logs of existing containers: the engine stores the logs unmasked. */
  readonly #hidden = new Map<string, { readonly texts: HiddenTexts; readonly more: ReturnType<JobSecrets> }>();
  readonly #jobSecrets: JobSecrets;

  constructor(
    engine: Engine,
    hostId: string,
    logsDir: string,
    { jobSecrets = () => async () => [], warn = () => {} }: DockerOptions = {},
  ) {
    this.#jobSecrets = jobSecrets;
    this.#engine = engine;
    this.#logsDir = logsDir;
    this.#containers = new Containers(engine, hostId, warn);
    this.#readyImage = imagesOf(engine);
    this.#ends = followEnds(engine, hostId, this.#tell);
  }

  handleOf = ({ workerId }: ImageSpec): WorkerHandle => handleOf(workerId);

  start(spec: ImageSpec, starting: Starting = unheard): Promise<WorkerHandle> {
    const { workerId } = spec;
    const start =
      this.#starting.get(workerId) ?? this.#start(spec, starting).finally(() => this.#starting.delete(workerId));
    this.#starting.set(workerId, start);
    return start;
  }

  async #start(spec: ImageSpec, starting: Starting): Promise<WorkerHandle> {
    const { workerId, command, entrypoint } = spec;
    const { image, auth } = spec.from;
    let isBegun = false;
    try {
      this.#ends.watch();
      const machine = await machineOf(this.#engine);
      await this.#readyImage({ image, hasCommand: command.length + entrypoint.length > 0, auth }, machine, starting);
      starting.reached("image");
      if (starting.signal.aborted) throw new Error("it is not wanted any more");
      isBegun = true;
      await this.#containers.make(spec, machine);
      starting.reached("made");
      await this.#containers.start(workerId);
      return handleOf(workerId, await this.#containers.find(workerId));
    } catch (error) {
      const { host } = this.#engine;
      if (isAway(error) && isBegun) throw new StartUnsure(whyNot(error, image, host).message);
      // if the removal fails, it is removed when its end is reported
      if (isBegun) await this.#containers.destroy(workerId).catch(() => {});
      throw statusOf(error) === undefined && !isAway(error) ? error : whyNot(error, image, host);
    }
  }

  async look(workerId: string) {
    const found = await this.#containers.find(workerId);
    if (!found) return absent;
    this.#ends.watch();
    return sightingOf(found, workerId, this.#killed.has(workerId));
  }

  pause = (workerId: string): Promise<void> => this.#containers.freeze(workerId, true);
  resume = (workerId: string): Promise<void> => this.#containers.freeze(workerId, false);
  stop = (workerId: string): Promise<void> => this.#signal(workerId, "SIGTERM");

  kill(workerId: string): Promise<void> {
    this.#killed.add(workerId);
    return this.#signal(workerId, "SIGKILL");
  }

  /** Sends a signal. If the container is gone or has ended, reports the end: it may have been missed. */
  async #signal(workerId: string, signal: string): Promise<void> {
    if (!(await this.#containers.signal(workerId, signal))) this.#tell(workerId);
  }

  async logTail(workerId: string): Promise<string> {
    const found = await this.#containers.find(workerId);
    return found ? lastLines(await this.#contained(workerId, found), this.#engine.host) : "";
  }

  /** A worker's lines, from the engine while it has the container, afterwards from the kept log. */
  async *logs(workerId: string, _handle: WorkerHandle | undefined, query: LogQuery) {
    const { host } = this.#engine;
    // by the engine's clock: lines written while the container is looked up are new, too
    const askedAt = realTime.wallMs();
    const found = await this.#containers.find(workerId).catch((error) => {
      throw isAway(error) ? away(error, host) : new Error(said(error));
    });
    if (found) yield* containerLogs(await this.#contained(workerId, found), host, query, askedAt);
    else yield* readLogFiles(this.#logsDir, workerId, query, () => true);
  }

  async hide(workerId: string, secret: string): Promise<void> {
    this.#hiddenOf(workerId).texts.add(secret);
  }

  #hiddenOf(workerId: string) {
    const hidden = this.#hidden.get(workerId) ?? { texts: new HiddenTexts([]), more: this.#jobSecrets(workerId) };
    this.#hidden.set(workerId, hidden);
    return hidden;
  }

  async #contained(workerId: string, found: Docker.ContainerInspectInfo): Promise<Contained> {
    const { texts, more } = this.#hiddenOf(workerId);
    for (const text of await more()) texts.add(text);
    const secrets = new HiddenTexts([...secretsIn(found), ...texts]);
    return { workerId, container: this.#containers.of(workerId), secrets };
  }

  async forget(workerId: string): Promise<void> {
    const { host } = this.#engine;
    this.#killed.delete(workerId);
    const found = await this.#containers.find(workerId);
    if (!found) this.#hidden.delete(workerId);
    if (!found || found.State.Running) return;
    // if the log cannot be kept, because the disk is full for instance, the container is still removed
    const keep = async () => keepContainerLog(await this.#contained(workerId, found), host, this.#logsDir);
    if (found.State.Status !== "created") await answered(keep(), host).catch(() => {});
    await this.#containers.remove(workerId);
    this.#hidden.delete(workerId);
  }

  onEnd(listener: (workerId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell = (workerId: string): void => {
    for (const listener of this.#listeners) listener(workerId);
  };

  leave = async (): Promise<void> => this.#ends.close();
}
