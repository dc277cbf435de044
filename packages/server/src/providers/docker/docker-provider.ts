import { constants } from "node:os";
import type Docker from "dockerode";
import type { ContainerHandle, Exit } from "../../domain/worker.js";
import { limits } from "../../limits.js";
import { type ContainerLaunch, type Provider, type Sighting, type Starting, StartUnsure } from "../../provider.js";
import { followEnds, type Labels, workerLabels } from "./ends.js";
import type { Engine } from "./engine.js";
import { answered, isAway, statusOf, whyNot } from "./failures.js";
import { imagesOf } from "./image.js";
import { lastLines } from "./output.js";

const nameOf = (workerId: string) => `millrace-${workerId}`;
const unheard: Starting = { note: () => {}, signal: new AbortController().signal };

/** Runs workers as containers of a Docker engine (or of one that speaks as it does), which other hosts may use, too. */
export function dockerProvider(engine: Engine, hostId: string): Provider<ContainerLaunch, ContainerHandle> {
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
  async function made(launch: ContainerLaunch, memoryBytes: number): Promise<void> {
    const { name, ...body } = containerOptions(launch, workerLabels(hostId, launch.workerId), memoryBytes);
    // its body alone holds the environment: what stands in a URL is logged
    const create = () =>
      call(engine.docker.createContainer({ _query: { name }, _body: body } as Docker.ContainerCreateOptions));
    try {
      await create();
    } catch (error) {
      if (statusOf(error) !== 409) throw error;
      const there = await inspected(launch.workerId);
      if (there?.State.Running) return;
      await call(containerOf(launch.workerId).remove({ force: true, v: true }));
      await create();
    }
  }

  async function started(launch: ContainerLaunch, starting: Starting): Promise<ContainerHandle> {
    const { workerId, image, command, entrypoint } = launch;
    let isBegun = false;
    try {
      ends.watch();
      const memoryBytes = await readyImage(image, command.length + entrypoint.length > 0, starting);
      if (starting.signal.aborted) throw new Error("it is not wanted any more");
      isBegun = true;
      await made(launch, memoryBytes);
      await unless([304], call(containerOf(workerId).start()));
      return { container: nameOf(workerId) };
    } catch (error) {
      if (isAway(error) && isBegun) throw new StartUnsure(whyNot(error, image, host).message);
      if (isBegun) await call(containerOf(workerId).remove({ force: true, v: true })).catch(() => {}); // or when it is told
      throw statusOf(error) === undefined && !isAway(error) ? error : whyNot(error, image, host);
    }
  }
  /** One start of a worker at a time: an engine that is making a container neither has it nor lets it be made. */
  const startings = new Map<string, Promise<ContainerHandle>>();

  /** Sends a signal; a container that is gone, or has ended, is told of: its end may have been missed. */
  async function signalled(workerId: string, signal: string): Promise<void> {
    try {
      await call(containerOf(workerId).kill({ signal }));
    } catch (error) {
      if (statusOf(error) !== 404 && statusOf(error) !== 409) throw error;
      tell(workerId);
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
      return sightingOf(found, workerId);
    },
    stop: (workerId) => signalled(workerId, "SIGTERM"),
    kill: (workerId) => signalled(workerId, "SIGKILL"),
    logTail: async (workerId) => ((await inspected(workerId)) ? lastLines(containerOf(workerId)) : ""),
    async forget(workerId) {
      const found = await inspected(workerId);
      if (found && !found.State.Running) await unless([404, 409], call(containerOf(workerId).remove({ v: true })));
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

/** What entry points of common images do as root: own files, change their user, end their children, listen on port 80. */
const keptCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL", "NET_BIND_SERVICE"];

/** What a container may do: no more than its image's own processes need. */
function containerOptions(
  { workerId, image, entrypoint, command, env, mounts }: ContainerLaunch,
  labels: Labels,
  memoryBytes: number,
): Docker.ContainerCreateOptions {
  return {
    name: nameOf(workerId),
    Image: image,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint.length > 0 ? { Entrypoint: [...entrypoint] } : {}),
    ...(command.length > 0 ? { Cmd: [...command] } : {}),
    Labels: labels,
    HostConfig: {
      Init: true, // the first process of a container minds no signal that it does not handle
      CapDrop: ["ALL"],
      CapAdd: keptCapabilities,
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: limits.containerProcessesMax,
      // one that takes all the machine has must not take this server with it
      Memory: Math.floor(memoryBytes * limits.containerMemoryShare),
      OomScoreAdj: limits.containerOomScore,
      Mounts: mounts.map(({ source, target }) => ({ Type: "bind" as const, Source: source, Target: target })),
      LogConfig: { Type: "json-file", Config: { "max-size": String(limits.logFileBytesMax), "max-file": "2" } },
    },
  };
}

function sightingOf({ State }: Docker.ContainerInspectInfo, workerId: string): Sighting {
  if (State.Running) return { state: "running", handle: { container: nameOf(workerId) } };
  if (State.Status === "created") return { state: "unknown" }; // we died before it was started
  return { state: "ended", exit: exitOf(State) };
}

/** The init process tells a signal as 128 and its number, as shells do. */
function exitOf({ ExitCode, OOMKilled }: { ExitCode: number; OOMKilled: boolean }): Exit {
  if (OOMKilled) return { code: ExitCode, signal: undefined, note: "it ran out of memory" };
  const [signal] = Object.entries(constants.signals).find(([, number]) => ExitCode === 128 + number) ?? [];
  return signal === undefined
    ? { code: ExitCode, signal: undefined, note: undefined }
    : { code: undefined, signal, note: undefined };
}
