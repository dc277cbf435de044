import type Docker from "dockerode";
import { HiddenTexts } from "../../domain/workers/log-line.js";
import type { ContainerHandle } from "../../domain/workers/worker.js";
import { type ContainerLaunch, type LogQuery, type Provider, type Starting, StartUnsure } from "../../provider.js";
import { readLogFiles } from "../log-files/reading.js";
import { containerOptions, handleOf, nameOf, sightingOf } from "./container.js";
import { followEnds, workerLabels } from "./ends.js";
import type { Engine } from "./engine.js";
import { answered, away, isAway, isTaken, said, statusOf, whyNot } from "./failures.js";
import { imagesOf, type Machine, machineOf } from "./image.js";
import { type Contained, containerLogs, keepContainerLog, secretIn } from "./logs.js";
import { lastLines } from "./output.js";

const unheard: Starting = { note: () => {}, reached: () => {}, signal: new AbortController().signal };

/**
 * Runs workers as containers of a Docker engine (or of one that speaks as it does), which other hosts may use, too. In
 * `logsDir` their logs are kept once they are removed.
 */
export function dockerProvider(
  engine: Engine,
  hostId: string,
  logsDir: string,
  warn: (message: string) => void = () => {},
): Provider<ContainerLaunch, ContainerHandle> {
  const { host } = engine;
  const readyImage = imagesOf(engine);
  const listeners: ((workerId: string) => void)[] = [];
  const tell = (workerId: string) => {
    for (const listener of listeners) listener(workerId);
  };
  const ends = followEnds(engine, hostId, tell);
  const containerOf = (workerId: string) => engine.docker.getContainer(nameOf(workerId));
  /** An engine that hangs is an engine that is away. */
  const call = <T>(asked: Promise<T>) => answered(asked, host);

  /** What the engine knows of a worker; undefined where it has no such container. */
  async function inspected(workerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await call(containerOf(workerId).inspect());
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  /** Makes a worker's container; one that was made and never started has another secret, and goes. */
  async function made(launch: ContainerLaunch, machine: Machine): Promise<void> {
    const { name, ...body } = containerOptions(launch, workerLabels(hostId, launch.workerId), machine, engine);
    // its body alone holds the environment: what stands in a URL is logged
    const create = () =>
      call(engine.docker.createContainer({ _query: { name }, _body: body } as Docker.ContainerCreateOptions));
    try {
      await create();
    } catch (error) {
      if (!isTaken(error)) throw error;
      const there = await inspected(launch.workerId);
      if (there?.State.Running) return;
      await call(containerOf(launch.workerId).remove({ force: true, v: true }));
      await create();
    }
  }

  let isDiskBounded = true;
  const diskUnbounded = () => {
    if (isDiskBounded)
      warn("this container engine cannot bound what containers write: containerDiskInGb is not enforced");
    isDiskBounded = false;
  };

  /** The same; an engine that could bound disks, and is not set up for it, says so only now. */
  async function madeWithin(launch: ContainerLaunch, machine: Machine): Promise<void> {
    const boundsDisks = machine.boundsDisks && isDiskBounded;
    if (launch.diskGb && !boundsDisks) diskUnbounded();
    try {
      await made(launch, { ...machine, boundsDisks });
    } catch (error) {
      if (!launch.diskGb || !boundsDisks || !/storage-?opt|quota/i.test(said(error))) throw error;
      diskUnbounded();
      await made(launch, { ...machine, boundsDisks: false });
    }
  }

  async function started(launch: ContainerLaunch, starting: Starting): Promise<ContainerHandle> {
    const { workerId, image, command, entrypoint, auth } = launch;
    let isBegun = false;
    try {
      ends.watch();
      const machine = await machineOf(engine);
      await readyImage({ image, hasCommand: command.length + entrypoint.length > 0, auth }, machine, starting);
      starting.reached("image");
      if (starting.signal.aborted) throw new Error("it is not wanted any more");
      isBegun = true;
      await madeWithin(launch, machine);
      starting.reached("made");
      await unless([304], call(containerOf(workerId).start()));
      const found = await inspected(workerId);
      return found ? handleOf(found, workerId) : { container: nameOf(workerId) };
    } catch (error) {
      if (isAway(error) && isBegun) throw new StartUnsure(whyNot(error, image, host).message);
      if (isBegun) await call(containerOf(workerId).remove({ force: true, v: true })).catch(() => {}); // or when it is told
      throw statusOf(error) === undefined && !isAway(error) ? error : whyNot(error, image, host);
    }
  }
  /** One start of a worker at a time: an engine that is making a container neither has it nor lets it be made. */
  const startings = new Map<string, Promise<ContainerHandle>>();

  /** Those that were killed by us: others that were killed have run out of memory, or somebody else did it. */
  const killed = new Set<string>();

  /** Sends a signal; a container that is gone, or has ended, is told of: its end may have been missed. */
  async function signalled(workerId: string, signal: string): Promise<void> {
    try {
      await call(containerOf(workerId).kill({ signal }));
      // Docker itself lets a paused container go on that is signalled. Not every engine does: frozen, it would not hear of it
      await frozen(workerId, false);
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      tell(workerId);
    }
  }

  /** What was hidden of the logs of containers that are there: the engine keeps them as they came. */
  const hidden = new Map<string, HiddenTexts>();

  const contained = (workerId: string, found: Docker.ContainerInspectInfo): Contained => ({
    workerId,
    container: containerOf(workerId),
    secrets: new HiddenTexts([secretIn(found) ?? "", ...(hidden.get(workerId) ?? [])]),
  });

  /** From the engine while it has the container, then from what was kept of it. */
  async function* logs(workerId: string, query: LogQuery) {
    const askedAt = Date.now(); // by the engine's clock: what comes while the container is looked up is new, too
    const found = await inspected(workerId).catch((error) => {
      throw isAway(error) ? away(error, host) : new Error(said(error));
    });
    if (found) yield* containerLogs(contained(workerId, found), host, query, askedAt);
    else yield* readLogFiles(logsDir, workerId, query, () => true);
  }

  /** Pauses a container, or lets it go on; one that is so already, or does not run, is no failure. */
  async function frozen(workerId: string, isFrozen: boolean): Promise<void> {
    const container = containerOf(workerId);
    try {
      await call(isFrozen ? container.pause() : container.unpause());
    } catch (error) {
      if (statusOf(error) === undefined) throw error;
      // engines do not agree on how they say it
      const found = await inspected(workerId);
      if (found?.State.Running && found.State.Paused !== isFrozen) throw error;
    }
  }

  return {
    handleOf: ({ workerId }) => ({ container: nameOf(workerId) }),
    start(launch, starting = unheard) {
      const { workerId } = launch;
      const start = startings.get(workerId) ?? started(launch, starting).finally(() => startings.delete(workerId));
      startings.set(workerId, start);
      return start;
    },
    async look(workerId) {
      const found = await inspected(workerId);
      if (!found) return { state: "unknown" };
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
      // a log that cannot be kept, on a full disk, is no reason to keep the container
      if (found.State.Status !== "created")
        await call(keepContainerLog(contained(workerId, found), host, logsDir)).catch(() => {});
      await unless([404, 409], call(containerOf(workerId).remove({ v: true })));
      hidden.delete(workerId);
    },
    onEnd: (listener) => void listeners.push(listener),
    leave: async () => ends.close(),
  };
}

/** Waits for a call; these answers are no failures. */
async function unless(statuses: readonly number[], asked: Promise<unknown>): Promise<void> {
  await asked.catch((error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error;
  });
}
