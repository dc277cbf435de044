import { constants } from "node:os";
import type Docker from "dockerode";
import type { ContainerHandle, Exit } from "../../domain/worker.js";
import { limits } from "../../limits.js";
import type { ContainerLaunch, Provider, Sighting } from "../../provider.js";
import { followEnds, workerLabel } from "./ends.js";
import type { Engine } from "./engine.js";
import { isAway, statusOf, whyNot } from "./failures.js";
import { imagesOf } from "./image.js";
import { lastLines } from "./output.js";

const nameOf = (workerId: string) => `millrace-${workerId}`;

/** Runs workers as containers of a Docker engine (or of one that speaks as it does). */
export function dockerProvider({ docker, host }: Engine): Provider<ContainerLaunch, ContainerHandle> {
  const readyImage = imagesOf(docker);
  const listeners: ((workerId: string) => void)[] = [];
  const ends = followEnds(docker, (workerId) => {
    for (const listener of listeners) listener(workerId);
  });
  const containerOf = (workerId: string) => docker.getContainer(nameOf(workerId));

  /** What the engine knows of a worker; undefined where it has no such container. */
  async function inspected(workerId: string): Promise<Docker.ContainerInspectInfo | undefined> {
    try {
      return await containerOf(workerId).inspect();
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  async function made(launch: ContainerLaunch): Promise<Docker.Container> {
    try {
      return await docker.createContainer(containerOptions(launch));
    } catch (error) {
      if (statusOf(error) === 409) return containerOf(launch.workerId); // by an earlier call
      throw error;
    }
  }

  async function started(launch: ContainerLaunch, note: (doing: string) => void): Promise<ContainerHandle> {
    try {
      await readyImage(launch.image, launch.command.length + launch.entrypoint.length > 0, note);
      const container = await made(launch);
      await container.start().catch(async (error) => {
        if (statusOf(error) === 304) return; // it runs
        await container.remove({ force: true }).catch(() => {});
        throw error;
      });
      ends.watch();
      return { containerId: (await container.inspect()).Id };
    } catch (error) {
      if (statusOf(error) === undefined && !isAway(error)) throw error;
      throw whyNot(error, launch.image, host);
    }
  }
  /** One start of a worker at a time: an engine that is making a container neither has it nor lets it be made. */
  const starting = new Map<string, Promise<ContainerHandle>>();

  return {
    start(launch, note = () => {}) {
      const { workerId } = launch;
      const start = starting.get(workerId) ?? started(launch, note).finally(() => starting.delete(workerId));
      starting.set(workerId, start);
      return start;
    },
    async look(workerId, handle) {
      const found = await inspected(workerId).catch((error) => {
        // an engine that never was here has no worker of ours
        if (handle === undefined && isAway(error)) return undefined;
        throw error;
      });
      if (!found) return { state: "unknown" };
      ends.watch();
      return sightingOf(found);
    },
    async stop(workerId) {
      await unless([404, 409], containerOf(workerId).kill({ signal: "SIGTERM" }));
    },
    async kill(workerId, handle) {
      await unless([404, 409], containerOf(workerId).kill({ signal: "SIGKILL" })).catch((error) => {
        if (handle !== undefined || !isAway(error)) throw error;
      });
    },
    logTail: async (workerId) => ((await inspected(workerId)) ? lastLines(containerOf(workerId)) : ""),
    async forget(workerId) {
      const found = await inspected(workerId).catch(() => undefined);
      if (found && !found.State.Running) await unless([404, 409], containerOf(workerId).remove());
    },
    onEnd: (listener) => void listeners.push(listener),
    leave: async () => ends.close(),
  };
}

/** Waits for a call; these answers are no failures. */
async function unless(statuses: readonly number[], call: Promise<unknown>): Promise<void> {
  await call.catch((error) => {
    if (!statuses.includes(statusOf(error) ?? 0)) throw error;
  });
}

/** What entry points of common images do as root: own files, change their user, end their children, listen on port 80. */
const keptCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETUID", "SETGID", "KILL", "NET_BIND_SERVICE"];

/** What a container may do: no more than its image's own processes need. */
function containerOptions({
  workerId,
  image,
  entrypoint,
  command,
  env,
  mounts,
}: ContainerLaunch): Docker.ContainerCreateOptions {
  return {
    name: nameOf(workerId),
    Image: image,
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(entrypoint.length > 0 ? { Entrypoint: [...entrypoint] } : {}),
    ...(command.length > 0 ? { Cmd: [...command] } : {}),
    Labels: { [workerLabel]: workerId },
    HostConfig: {
      Init: true, // the first process of a container minds no signal that it does not handle
      CapDrop: ["ALL"],
      CapAdd: keptCapabilities,
      SecurityOpt: ["no-new-privileges"],
      PidsLimit: limits.containerProcessesMax,
      Mounts: mounts.map(({ source, target }) => ({ Type: "bind" as const, Source: source, Target: target })),
      LogConfig: { Type: "json-file", Config: { "max-size": String(limits.logFileBytesMax), "max-file": "2" } },
    },
  };
}

function sightingOf({ Id, State }: Docker.ContainerInspectInfo): Sighting {
  if (State.Running) return { state: "running", handle: { containerId: Id } };
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
