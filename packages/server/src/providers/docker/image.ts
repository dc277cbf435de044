import type Docker from "dockerode";
import { isImageReference, noReference } from "../../domain/endpoints/image-reference.js";
import { StartFailed, type Starting } from "../../provider.js";
import type { Engine } from "./engine.js";
import { answered, statusOf } from "./failures.js";
import { type Auth, pull } from "./pull.js";

/** Architectures as engines name them, and as images do. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  ppc64le: "ppc64le",
  s390x: "s390x",
};

/** The image and how it will be used. */
export interface Wanted {
  readonly image: string;
  /** Whether the template sets a command. */
  readonly hasCommand: boolean;
  readonly auth?: Auth;
}

/**
 * Returns a function that makes an image present and checks that it can run here; it rejects with one sentence if not.
 */
export function imagesOf(engine: Engine): (wanted: Wanted, machine: Machine, starting: Starting) => Promise<void> {
  /** Workers that need the same image with the same credentials share one pull, and all follow its progress. */
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
    // images saved or released by earlier versions of this service were not checked
    if (!isImageReference(wanted.image)) throw new StartFailed(noReference(wanted.image), "image");
    const found = (await inspected(engine, wanted.image)) ?? (await pulled(wanted, starting));
    const complaint = complaintOf(found, wanted, machine);
    if (complaint !== undefined) throw new StartFailed(complaint, "image");
  };
}

/** Why an image cannot run here, in one sentence; undefined if nothing is known against it. */
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
 * Why an image cannot run here, as far as known without a pull. Undefined if the image is not present or no engine
 * answers.
 */
export async function complaintNow(engine: Engine, wanted: Wanted): Promise<string | undefined> {
  if (!isImageReference(wanted.image)) return noReference(wanted.image);
  const found = await inspected(engine, wanted.image);
  return found && complaintOf(found, wanted, await machineOf(engine));
}

/** The engine's machine. */
export interface Machine {
  /** In the form that images use. */
  readonly architecture: string;
  readonly memoryBytes: number;
  readonly cpus: number;
  /** Whether the engine can limit what a container writes, as far as it reports. */
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

/**
 * Stops waiting for a pull if its worker is no longer wanted. The pull itself goes on: the next worker will need the
 * image.
 */
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

/** The engine's facts about an image. The library's own call cannot be aborted while it reads. */
function factsOf({ docker, host }: Engine, image: string): Promise<Docker.ImageInspectInfo> {
  // the name goes into the URL unescaped, because engines expect its slashes
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
