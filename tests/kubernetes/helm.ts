import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { builtHelm, templateArgs } from "../../scripts/kubernetes/helm.mjs";

/** The outcome of a run of Helm. */
export interface HelmRun {
  readonly code: number | null;
  /** What it printed, with its complaints. */
  readonly text: string;
}

/** Helm with a folder of its own for what it remembers. */
export class Helm {
  readonly #program: string;
  readonly #home = mkdtempSync(join(tmpdir(), "millrace-helm-"));

  private constructor(program: string) {
    this.#program = program;
  }

  static open = async (): Promise<Helm> => new Helm(await builtHelm());

  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): HelmRun {
    const homes = ["CACHE", "CONFIG", "DATA"].map((name) => [`HELM_${name}_HOME`, join(this.#home, name)]);
    const { status, stdout, stderr } = spawnSync(this.#program, args, {
      encoding: "utf8",
      env: { ...process.env, ...Object.fromEntries(homes), ...env },
      maxBuffer: 2 ** 26,
    });
    return { code: status, text: `${stdout}${stderr}` };
  }

  /** The chart's manifests with these values. */
  template(...values: readonly string[]): HelmRun {
    return this.run(templateArgs(...values));
  }

  close(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }
}
