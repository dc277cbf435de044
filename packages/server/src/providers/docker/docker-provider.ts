import type Docker from "dockerode";
import { realTime } from "../../clock.js";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import type { WorkerHandle } from "../../domain/workers/worker.js";
import { type ImageSpec, type LogQuery, type Provider, type Starting, StartUnsure } from "../../provider.js";
import { readLogFiles } from "../log-files/reading.js";
import { absent, containerOptions, handleOf, nameOf, sightingOf } from "./container.js";
import { followEnds, workerLabels } from "./ends.js";
import type { Engine } from "./engine.js";
import { answered, away, isAway, isTaken, said, statusOf, whyNot } from "./failures.js";
import { imagesOf, type Machine, machineOf } from "./image.js";
import { type Contained, containerLogs, keepContainerLog, secretsIn } from "./logs.js";
import { lastLines } from "./output.js";

const unheard: Starting = { note: () => {}, reached: () => {}, signal: new AbortController().signal };

/**
 * Runs workers as containers of a Docker engine or a compatible one, which other hosts may share. After a container is
 * removed, its log is kept in `logsDir`.
 */
export function dockerProvider(
  engine: Engine,
  hostId: string,
  logsDir: string,
  warn: (message: string) => void = () => {},
): Provider<ImageSpec> {
  const { host } = engine;
  const readyImage = imagesOf(engine);
  const listeners: ((workerId: string) => void)[] = [];
  const tell = (workerId: string) => {
    for (const listener of listeners) listener(workerId);
  };
  const ends = followEnds(engine, hostId, tell);
  const containerOf = (workerId: string) => engine.docker.getContainer(nameOf(workerId));
  /** Waits for an engine's answer; an engine that hangs counts as away. */
  const call = <T>(asked: Promise<T>) => answered(asked, host);

  /** The engine's facts about a worker's container; undefined if there is none. */
  async function inspected(workerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await call(containerOf(workerId).inspect());
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  /**
   * Makes a worker's container. One that was made and never started is removed first, because it has another secret.
   */
  async function made(spec: ImageSpec, machine: Machine): Promise<void> {
    const { name, ...body } = containerOptions(spec, workerLabels(hostId, spec), machine, engine);
    // the name goes into the URL alone, because URLs are logged and the body holds the environment
    const create = () =>
      call(engine.docker.createContainer({ _query: { name }, _body: body } as Docker.ContainerCreateOptions));
    try {
      await create();
    } catch (error) {
      if (!isTaken(error)) throw error;
      const there = await inspected(spec.workerId);
      if (there?.State.Running) return;
      await call(containerOf(spec.workerId).remove({ force: true, v: true }));
      await create();
    }
  }

  let isDiskBounded = true;
  const diskUnbounded = () => {
    if (isDiskBounded)
      warn("this container engine cannot limit what containers write: containerDiskInGb is not enforced");
    isDiskBounded = false;
  };

  /** Makes a worker's container with its disk limit. An engine not set up for such limits reveals that only here. */
  async function madeWithin(spec: ImageSpec, machine: Machine): Promise<void> {
    const boundsDisks = machine.boundsDisks && isDiskBounded;
    if (spec.diskGb && !boundsDisks) diskUnbounded();
    try {
      await made(spec, { ...machine, boundsDisks });
    } catch (error) {
      if (!spec.diskGb || !boundsDisks || !/storage-?opt|quota/i.test(said(error))) throw error;
      diskUnbounded();
      await made(spec, { ...machine, boundsDisks: false });
    }
  }

  async function started(spec: ImageSpec, starting: Starting): Promise<WorkerHandle> {
    const { workerId, command, entrypoint } = spec;
    const { image, auth } = spec.from;
    let isBegun = false;
    try {
      ends.watch();
      const machine = await machineOf(engine);
      await readyImage({ image, hasCommand: command.length + entrypoint.length > 0, auth }, machine, starting);
      starting.reached("image");
      if (starting.signal.aborted) throw new Error("it is not wanted any more");
      isBegun = true;
      await madeWithin(spec, machine);
      starting.reached("made");
      await unless([304], call(containerOf(workerId).start()));
      const found = await inspected(workerId);
      return handleOf(workerId, found);
    } catch (error) {
      if (isAway(error) && isBegun) throw new StartUnsure(whyNot(error, image, host).message);
      // if the removal fails, it is removed when its end is reported
      if (isBegun) await call(containerOf(workerId).remove({ force: true, v: true })).catch(() => {});
      throw statusOf(error) === undefined && !isAway(error) ? error : whyNot(error, image, host);
    }
  }
  /**
   * One start per worker at a time: while an engine makes a container, it neither finds it nor lets it be made again.
   */
  const startings = new Map<string, Promise<WorkerHandle>>();

  /** Workers that we killed. Any other killed worker ran out of memory, or was killed by somebody else. */
  const killed = new Set<string>();

  /** Sends a signal. If the container is gone or has ended, reports the end: it may have been missed. */
  async function signalled(workerId: string, signal: string): Promise<void> {
    try {
      await call(containerOf(workerId).kill({ signal }));
      // Docker resumes a paused container when it is signalled; other engines do not, and frozen it would not react
      await frozen(workerId, false);
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      tell(workerId);
    }
  }

  /** Secrets hidden from the logs of existing containers: the engine stores the logs unmasked. */
  const hidden = new Map<string, HiddenTexts>();

  const contained = (workerId: string, found: Docker.ContainerInspectInfo): Contained => ({
    workerId,
    container: containerOf(workerId),
    secrets: new HiddenTexts([...secretsIn(found), ...(hidden.get(workerId) ?? [])]),
  });

  /** A worker's lines, from the engine while it has the container, afterwards from the kept log. */
  async function* logs(workerId: string, query: LogQuery) {
    const askedAt = realTime.wallMs(); // by the engine's clock: lines written while the container is looked up are new, too
    const found = await inspected(workerId).catch((error) => {
      throw isAway(error) ? away(error, host) : new Error(said(error));
    });
    if (found) yield* containerLogs(contained(workerId, found), host, query, askedAt);
    else yield* readLogFiles(logsDir, workerId, query, () => true);
  }

  /** Pauses or resumes a container; it is no failure if it is in that state already, or does not run. */
  async function frozen(workerId: string, isFrozen: boolean): Promise<void> {
    const container = containerOf(workerId);
    try {
      await call(isFrozen ? container.pause() : container.unpause());
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      // engines report this differently
      const found = await inspected(workerId);
      if (found?.State.Running && found.State.Paused !== isFrozen) throw error;
    }
  }

  return {
    handleOf: ({ workerId }) => handleOf(workerId),
    start(spec, starting = unheard) {
      const { workerId } = spec;
      const start = startings.get(workerId) ?? started(spec, starting).finally(() => startings.delete(workerId));
      startings.set(workerId, start);
      return start;
    },
    async look(workerId) {
      const found = await inspected(workerId);
      if (!found) return absent;
      ends.watch();
      return sightingOf(found, workerId, killed.has(workerId));
    },
    pause: (workerId) => frozen(workerId, true),
    resume: (workerId) => frozen(workerId, false),
    stop: (workerId) => signalled(workerId, "SIGTERM"),
    kill(workerId) {
      killed.add(workerId);
      return signalled(workerId, "SIGKILL");
    },
    async logTail(workerId) {
      const found = await inspected(workerId);
      return found ? lastLines(contained(workerId, found), host) : "";
    },
    logs: (workerId, _handle, query) => logs(workerId, query),
    async hide(workerId, secret) {
      const texts = hidden.get(workerId) ?? new HiddenTexts([]);
      texts.add(secret);
      hidden.set(workerId, texts);
    },
    async forget(workerId) {
      killed.delete(workerId);
      const found = await inspected(workerId);
      if (!found) hidden.delete(workerId);
      if (!found || found.State.Running) return;
      // if the log cannot be kept, because the disk is full for instance, the container is still removed
      if (found.State.Status !== "created")
        await call(keepContainerLog(contained(workerId, found), host, logsDir)).catch(() => {});
      await unless([404, 409], call(containerOf(workerId).remove({ v: true })));
      hidden.delete(workerId);
    },
    onEnd: (listener) => void listeners.push(listener),
    leave: async () => ends.close(),
  };
}

/** Waits for a call; these statuses do not count as failures. */
async function unless(statuses: readonly number[], asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error;
  });
}
