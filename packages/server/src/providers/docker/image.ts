import type Docker from "dockerode";
import { isImageReference, noReference } from "../../domain/endpoints/image-reference.js";
import { StartFailed, type Starting } from "../../provider.js";
import type { Engine } from "./engine.js";
import { answered, statusOf } from "./failures.js";
import { type Auth, pull } from "./pull.js";

/** How an engine names this machine's kind, and how images do. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  ppc64le: "ppc64le",
  s390x: "s390x",
};

/** What is to run of an image, and by whose leave it is pulled. */
export interface Wanted {
  readonly image: string;
  /** Whether the template names a command of its own. */
  readonly hasCommand: boolean;
  readonly auth?: Auth;
}

/** Makes images present, and checks that each can run here at all: rejects with one sentence where it cannot. */
export function imagesOf(engine: Engine): (wanted: Wanted, machine: Machine, starting: Starting) => Promise<void> {
  /** Workers that need the same image by the same leave wait for one pull together, and all hear how far it is. */
  const pulls = new Map<string, { done: Promise<void>; notes: Set<(doing: string) => void> }>();
  const pulled = async ({ image, auth }: Wanted, { note, signal }: Starting) => {
    const name = JSON.stringify([image, auth]);
    let pulling = pulls.get(name);
    if (!pulling) {
      const notes = new Set<(doing: string) => void>();
      const tell = (doing: string) => notes.forEach((each) => void each(doing));
      pulling = { notes, done: pull(engine, image, auth, tell).finally(() => pulls.delete(name)) };
      pulls.set(name, pulling);
    }
    pulling.notes.add(note);
    note(`pulling the image '${image}'`);
    await unlessAborted(pulling.done, signal).finally(() => pulling.notes.delete(note));
    return factsOf(engine, image);
  };
  return async (wanted, machine, starting) => {
    // what was saved, or frozen in a release, by an earlier version of ours was not looked at
    if (!isImageReference(wanted.image)) throw new StartFailed(noReference(wanted.image), "image");
    const found = (await inspected(engine, wanted.image)) ?? (await pulled(wanted, starting));
    const complaint = complaintOf(found, wanted, machine);
    if (complaint !== undefined) throw new StartFailed(complaint, "image");
  };
}

/** What keeps an image from running here, in one sentence; undefined where nothing does that can be seen. */
function complaintOf(found: Docker.ImageInspectInfo, { image, hasCommand }: Wanted, { architecture }: Machine) {
  if (found.Architecture && found.Architecture !== architecture) {
    return `the image '${image}' is for ${found.Architecture}, and this machine is ${architecture}: build it for this one`;
  }
  const { Entrypoint, Cmd } = found.Config;
  if (!hasCommand && (Entrypoint ?? []).length === 0 && (Cmd ?? []).length === 0) {
    return `the image '${image}' names no command: set dockerStartCmd in the template`;
  }
  return undefined;
}

/**
 * What keeps an image from running here, as far as that is known without a pull: undefined where the image is not here, or
 * nobody answers.
 */
export async function complaintNow(engine: Engine, wanted: Wanted): Promise<string | undefined> {
  if (!isImageReference(wanted.image)) return noReference(wanted.image);
  const found = await inspected(engine, wanted.image);
  return found && complaintOf(found, wanted, await machineOf(engine));
}

/** The engine's machine. */
export interface Machine {
  /** As images name it. */
  readonly architecture: string;
  readonly memoryBytes: number;
  readonly cpus: number;
  /** Whether the engine can bound what a container writes, as far as it tells. */
  readonly boundsDisks: boolean;
}

export async function machineOf({ docker, host }: Engine): Promise<Machine> {
  const { Architecture, MemTotal, NCPU, Driver, DriverStatus } = (await answered(docker.info(), host)) as {
    Architecture: string;
    MemTotal: number;
    NCPU: number;
    Driver?: string;
    DriverStatus?: readonly (readonly [string, string])[] | null;
  };
  const below = (DriverStatus ?? []).find(([name]) => name === "Backing Filesystem")?.[1];
  const boundsDisks = Driver === "btrfs" || Driver === "zfs" || (Driver === "overlay2" && below === "xfs");
  return {
    architecture: architectures[Architecture] ?? Architecture,
    memoryBytes: MemTotal,
    cpus: NCPU,
    boundsDisks,
  };
}

/** A pull goes on though a worker that waited for it is not wanted any more: the next one will need the image. */
function unlessAborted(done: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(new Error("it is not wanted any more"));
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    done.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

async function inspected(engine: Engine, image: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await factsOf(engine, image);
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** What the engine knows of an image. The library's own call cannot be told to stop reading. */
function factsOf({ docker, host }: Engine, image: string): Promise<Docker.ImageInspectInfo> {
  // the name stands in the address as it is, for engines look for its slashes
  if (!isImageReference(image)) throw new StartFailed(noReference(image), "image");
  const asked = { path: `/images/${image}/json`, method: "GET", statusCodes: { 200: true, 404: "no such image" } };
  const ask = (abortSignal: AbortSignal) =>
    new Promise<Docker.ImageInspectInfo>((resolve, reject) => {
      docker.modem.dial({ ...asked, abortSignal }, (error: unknown, found: unknown) =>
        error ? reject(error) : resolve(found as Docker.ImageInspectInfo),
      );
    });
  return answered(ask, host);
}
