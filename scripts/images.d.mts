import type { TestDocker } from "./docker.mjs";

interface Image {
  /** Left out: an image to build others on. */
  readonly handler?: string;
  /** More programs of this machine. */
  readonly programs?: readonly string[];
  /** More files: path in the image, path here. */
  readonly files?: Readonly<Record<string, string>>;
  readonly changes?: readonly string[];
}

export function makeNodeImage(engine: Pick<TestDocker, "makeImage">, name: string, image: Image): string;
export function makePythonImage(
  engine: Pick<TestDocker, "makeImage">,
  name: string,
  image: Image & { readonly venv: string },
): string;
