import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { realTime } from "../../clock.js";
import { limits } from "../../limits/index.js";
import type { ImageSpec } from "../../provider.js";
import { registryOf } from "../images/container.js";
import type { Engine } from "./engine.js";
import { answered, away, isAway, whyNotPulled } from "./failures.js";

/** The credentials for a pull. */
export type Auth = ImageSpec["from"]["auth"];

/** A line of a pull's output: about one layer, or an error. */
interface PullLine {
  readonly id?: string;
  readonly status?: string;
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

/** Pulls an image and reports its progress; rejects with the reason if it fails. */
export async function pull(
  engine: Engine,
  image: string,
  auth: Auth,
  tell: (doing: string) => void,
  stallMs: number = limits.pullStallMs,
): Promise<void> {
  const layers = new PulledLayers();
  try {
    const credentials = auth ? { authconfig: { ...auth, serveraddress: registryOf(image) } } : {};
    const stalled = new AbortController();
    const options = { ...credentials, abortSignal: stalled.signal };
    const pulling = (await answered(engine.docker.pull(withTag(image), options), engine.host, stallMs)) as Readable;
    // the engine reports progress often: after so long a silence it is waiting for a registry in vain
    const stall = realTime.after(stallMs, () =>
      pulling.destroy(new Error(`timed out: nothing came for ${stallMs / 1_000} s`)),
    );
    let failed: string | undefined;
    try {
      for await (const text of createInterface({ input: pulling })) {
        stall.refresh();
        const line = lineOf(text);
        failed = line.error ?? failed; // an error is a line of its own
        layers.hear(line);
        tell(`pulling the image '${image}'${layers.said()}`);
      }
      if (pulling.errored) throw pulling.errored;
    } finally {
      realTime.cancel(stall);
      stalled.abort();
    }
    if (failed !== undefined) throw new Error(failed);
  } catch (error) {
    throw isAway(error) ? away(error, engine.host) : whyNotPulled(error, image, auth);
  }
}

const withTag = (image: string) => (/[:@][^/]+$/.test(image) ? image : `${image}:latest`);

/** Parses a line; one cut off when the engine hung up means nothing. */
function lineOf(text: string): PullLine {
  try {
    return JSON.parse(text) as PullLine;
  } catch {
    return {};
  }
}

const megabyte = 1_000_000;

/** How much of an image has arrived: each layer reports its size when it begins. */
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

  /** `: 120 of 340 MB so far`; empty while no size is known. */
  said(): string {
    const layers = [...this.#layers.values()];
    if (layers.length === 0) return "";
    const sum = (part: "current" | "total") => layers.reduce((all, layer) => all + layer[part], 0);
    return `: ${Math.floor(sum("current") / megabyte)} of ${Math.ceil(sum("total") / megabyte)} MB so far`;
  }
}
