import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type Docker from "dockerode";
import type { Starting } from "../../provider.js";
import type { Engine } from "./engine.js";
import { answered, said, statusOf } from "./failures.js";

/** How an engine names this machine's kind, and how images do. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  ppc64le: "ppc64le",
  s390x: "s390x",
};

/**
 * Makes images present, and checks that each can run here at all: rejects with one sentence where it cannot. Resolves with the
 * memory of the engine's machine, in bytes.
 */
export function imagesOf(engine: Engine): (image: string, hasCommand: boolean, starting: Starting) => Promise<number> {
  /** Workers that need the same image wait for one pull together, and all hear how far it is. */
  const pulls = new Map<string, { done: Promise<void>; notes: Set<(doing: string) => void> }>();
  const pulled = async (image: string, { note, signal }: Starting) => {
    let pulling = pulls.get(image);
    if (!pulling) {
      const notes = new Set<(doing: string) => void>();
      const tell = (doing: string) => notes.forEach((each) => void each(doing));
      pulling = { notes, done: pull(engine.docker, image, tell).finally(() => pulls.delete(image)) };
      pulls.set(image, pulling);
    }
    pulling.notes.add(note);
    note(`pulling the image '${image}'`);
    await unlessAborted(pulling.done, signal).finally(() => pulling.notes.delete(note));
    return answered(engine.docker.getImage(image).inspect(), engine.host);
  };
  return async (image, hasCommand, starting) => {
    const found = (await inspected(engine, image)) ?? (await pulled(image, starting));
    const { Architecture, MemTotal } = (await answered(engine.docker.info(), engine.host)) as {
      Architecture: string;
      MemTotal: number;
    };
    const machine = architectures[Architecture] ?? Architecture;
    if (found.Architecture && found.Architecture !== machine) {
      throw new Error(
        `the image '${image}' is for ${found.Architecture}, and this machine is ${machine}: build it for this one`,
      );
    }
    const { Entrypoint, Cmd } = found.Config;
    if (!hasCommand && (Entrypoint ?? []).length === 0 && (Cmd ?? []).length === 0) {
      throw new Error(`the image '${image}' names no command: set dockerStartCmd in the template`);
    }
    return MemTotal;
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

async function inspected({ docker, host }: Engine, image: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await answered(docker.getImage(image).inspect(), host);
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}

/** A line of a pull: what the engine says of one layer, or that it failed. */
interface PullLine {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

async function pull(docker: Docker, image: string, tell: (doing: string) => void): Promise<void> {
  const layers = new PulledLayers();
  try {
    const pulling = (await docker.pull(/[:@][^/]+$/.test(image) ? image : `${image}:latest`)) as Readable;
    let failed: string | undefined;
    for await (const text of createInterface({ input: pulling })) {
      const line = JSON.parse(text) as PullLine;
      failed = line.error ?? failed; // an error comes as a line of its own
      layers.hear(line);
      tell(`pulling the image '${image}'${layers.said()}`);
    }
    if (failed !== undefined) throw new Error(failed);
  } catch (error) {
    throw new Error(`the image '${image}' is not on this machine and could not be pulled: ${said(error)}`);
  }
}

const megabyte = 1_000_000;

/** How much of an image has come: its layers tell their sizes one by one, as they begin. */
class PulledLayers {
  readonly #layers = new Map<string, { current: number; total: number }>();

  hear({ id, status, progressDetail }: PullLine): void {
    if (id === undefined || status === undefined) return;
    const before = this.#layers.get(id);
    if (status === "Downloading" && progressDetail?.total !== undefined) {
      this.#layers.set(id, { current: progressDetail.current ?? 0, total: progressDetail.total });
    } else if (before && /^(Download complete|Verifying Checksum|Extracting|Pull complete)$/.test(status)) {
      this.#layers.set(id, { ...before, current: before.total });
    }
  }

  /** `: 120 of 340 MB so far`; nothing while no size is known. */
  said(): string {
    const layers = [...this.#layers.values()];
    if (layers.length === 0) return "";
    const sum = (part: "current" | "total") => layers.reduce((all, layer) => all + layer[part], 0);
    return `: ${Math.floor(sum("current") / megabyte)} of ${Math.ceil(sum("total") / megabyte)} MB so far`;
  }
}
