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
export function imagesOf(docker: Docker): (image: string, hasCommand: boolean) => Promise<void> {
  /** Workers that need the same image wait for one pull together. */
  const pulls = new Map<string, Promise<void>>();
  const pulled = async (image: string) => {
    const pulling = pulls.get(image) ?? pull(docker, image).finally(() => pulls.delete(image));
    pulls.set(image, pulling);
    await pulling;
    return docker.getImage(image).inspect();
  };
  return async (image, hasCommand) => {
    const found = (await inspected(docker, image)) ?? (await pulled(image));
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

async function pull(docker: Docker, image: string): Promise<void> {
  try {
    const progress = await docker.pull(/[:@][^/]+$/.test(image) ? image : `${image}:latest`);
    const lines = await new Promise<{ error?: string }[]>((resolve, reject) =>
      docker.modem.followProgress(progress, (error, all) => (error ? reject(error) : resolve(all))),
    );
    // an error comes as a line of its own, and the library takes it for progress
    const failed = lines.find((line) => line.error !== undefined);
    if (failed) throw new Error(failed.error);
  } catch (error) {
    throw new Error(`the image '${image}' is not on this machine and could not be pulled: ${said(error)}`);
  }
}
