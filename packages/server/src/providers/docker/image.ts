import type Docker from "dockerode";
import { said, statusOf } from "./failures.js";

/** How an engine names this machine's kind, and how images do. */
const architectures: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  ppc64le: "ppc64le",
  s390x: "s390x",
};

/** Makes images present, and checks that each can run here at all: rejects with one sentence where it cannot. */
export function imagesOf(
  docker: Docker,
): (image: string, hasCommand: boolean, note: (doing: string) => void) => Promise<void> {
  /** Workers that need the same image wait for one pull together, and all hear how far it is. */
  const pulls = new Map<string, { done: Promise<void>; notes: Set<(doing: string) => void> }>();
  const pulled = async (image: string, note: (doing: string) => void) => {
    let pulling = pulls.get(image);
    if (!pulling) {
      const notes = new Set<(doing: string) => void>();
      const tell = (doing: string) => notes.forEach((each) => void each(doing));
      pulling = { notes, done: pull(docker, image, tell).finally(() => pulls.delete(image)) };
      pulls.set(image, pulling);
    }
    pulling.notes.add(note);
    await pulling.done;
    return docker.getImage(image).inspect();
  };
  return async (image, hasCommand, note) => {
    const found = (await inspected(docker, image)) ?? (await pulled(image, note));
    const { Architecture } = (await docker.info()) as { Architecture: string };
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
  };
}

async function inspected(docker: Docker, image: string): Promise<Docker.ImageInspectInfo | undefined> {
  try {
    return await docker.getImage(image).inspect();
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
    tell(`pulling the image '${image}'`);
    const lines = await docker.pull(/[:@][^/]+$/.test(image) ? image : `${image}:latest`);
    let failed: string | undefined;
    await new Promise<void>((resolve, reject) =>
      docker.modem.followProgress(
        lines,
        (error) => (error ? reject(error) : resolve()),
        (line: PullLine) => {
          // an error comes as a line of its own, and the library takes it for progress
          failed = line.error ?? failed;
          layers.hear(line);
          tell(`pulling the image '${image}'${layers.said()}`);
        },
      ),
    );
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
