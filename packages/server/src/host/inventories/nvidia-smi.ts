import { execFile } from "node:child_process";
import { realTime } from "../../clock.js";
import type { Gpu } from "../../domain/hosts/gpu.js";
import { limits } from "../../limits/index.js";
import { type GpuList, migField, plainFields, readGpuList, shown } from "./gpu-list.js";

/** The GPU part of a stock. */
export interface GpuStock {
  readonly gpus: readonly Gpu[] | undefined;
  readonly hasGpus: boolean;
  readonly problems: readonly string[];
  readonly isBlind?: true;
}

interface Ran {
  /** Undefined if there is no such program. */
  readonly code: number | undefined;
  readonly text: string;
}

class Silent extends Error {}

const none = (why: string, hasGpus = false): GpuStock => ({ gpus: [], hasGpus, problems: [why] });
const blind = (why: string, hasGpus = false): GpuStock => ({ ...none(why, hasGpus), isBlind: true });
const unsure = (why: string): GpuStock => ({ gpus: undefined, hasGpus: true, problems: [why] });

/** The GPUs that `nvidia-smi` reports: one run at a time, with limits on its time and output. */
export class NvidiaSmi {
  readonly #env: NodeJS.ProcessEnv;
  readonly #answerMs: number;
  #fields = [...plainFields, migField];
  /** Runs that were given up but have not ended: a hanging driver makes its callers unkillable. */
  #hanging = 0;

  constructor(env: Readonly<Record<string, string | undefined>>, answerMs: number = limits.gpuAnswerMs) {
    // it needs no other variables, and must not see our secrets
    const { PATH, LD_LIBRARY_PATH } = env;
    this.#env = { LC_ALL: "C", ...(PATH && { PATH }), ...(LD_LIBRARY_PATH && { LD_LIBRARY_PATH }) };
    this.#answerMs = answerMs;
  }

  /** Looks once. Anything that cannot be found out is part of the result. */
  async look(): Promise<GpuStock> {
    if (this.#hanging > 0) return unsure("nvidia-smi hangs, and cannot even be killed: the driver is stuck.");
    const giveUpAt = realTime.monotonicMs() + this.#answerMs;
    try {
      return await this.#ask(giveUpAt);
    } catch (error) {
      if (error instanceof Silent) return unsure(`nvidia-smi did not answer within ${this.#answerMs / 1_000} s.`);
      return unsure(`nvidia-smi could not be run (${shown(error instanceof Error ? error.message : String(error))}).`);
    }
  }

  async #ask(giveUpAt: number): Promise<GpuStock> {
    let ran = await this.#query([], giveUpAt);
    if (ran.code === undefined) return none("There is no nvidia-smi on the PATH.");
    if (this.#fields.includes(migField) && isUnknownField(ran.text, migField)) {
      this.#fields = plainFields;
      ran = await this.#query([], giveUpAt);
    }
    const list = readGpuList(ran.text);
    if (list.gpus.length === 0 && list.hasUnreachable) return this.#askOneByOne(list, giveUpAt);
    if (list.gpus.length === 0 && list.problems.length === 0) return verdictOf(ran, list);
    const odd = list.unknown === undefined ? [] : [`nvidia-smi said something unknown: ${list.unknown}`];
    return { gpus: list.gpus, hasGpus: true, problems: [...list.problems, ...odd] };
  }

  /** Queries GPUs one by one, because with older drivers a lost GPU ends the output before the others are listed. */
  async #askOneByOne(whole: GpuList, giveUpAt: number): Promise<GpuStock> {
    const gpus: Gpu[] = [];
    const problems = new Set(whole.problems);
    for (let index = 0; index < limits.gpusMax; index++) {
      const { text } = await this.#query(["-i", String(index)], giveUpAt);
      const list = readGpuList(text);
      for (const problem of list.problems) problems.add(problem);
      gpus.push(...list.gpus);
      if (list.gpus.length === 0 && list.problems.length === 0) break;
    }
    return { gpus, hasGpus: true, problems: [...problems] };
  }

  #query(which: readonly string[], giveUpAt: number): Promise<Ran> {
    const args = [...which, `--query-gpu=${this.#fields.join(",")}`, "--format=csv,noheader,nounits"];
    return this.#run(args, giveUpAt - realTime.monotonicMs());
  }

  #run(args: readonly string[], ms: number): Promise<Ran> {
    return new Promise((resolve, reject) => {
      let isGivenUp = false;
      const options = { env: this.#env, maxBuffer: limits.gpuTextBytesMax, encoding: "utf8" as const };
      const child = execFile("nvidia-smi", args, options, (error, stdout, stderr) => {
        realTime.cancel(timer);
        if (isGivenUp) this.#hanging--;
        if (error && (error as NodeJS.ErrnoException).code === "ENOENT") resolve({ code: undefined, text: "" });
        else if (error && typeof error.code !== "number") reject(error);
        else resolve({ code: error ? Number(error.code) : 0, text: `${stdout}\n${stderr}` });
      });
      const timer = realTime.after(Math.max(1, ms), () => {
        isGivenUp = true;
        this.#hanging++;
        child.kill("SIGKILL");
        // child processes may hold the pipes open
        child.stdout?.destroy();
        child.stderr?.destroy();
        child.unref();
        reject(new Silent());
      });
    });
  }
}

const isUnknownField = (text: string, field: string) => text.includes(`Field "${field}" is not a valid field to query`);

/**
 * Explains why no GPU was listed. Exit codes: 6 no device, 9 no driver, 12 no library, 18 library of another driver
 * version.
 */
function verdictOf({ code, text }: Ran, { unknown }: GpuList): GpuStock {
  if (code === 6 || /No devices were found/i.test(text)) return none("nvidia-smi finds no GPU.");
  if (code === 9 || /couldn't communicate with the NVIDIA driver/i.test(text))
    return blind("nvidia-smi cannot speak to the driver: it is not installed, or not loaded.");
  if (code === 18 || /Driver\/library version mismatch/i.test(text))
    return blind(
      "The driver was updated while it was loaded (driver/library version mismatch): restart the machine.",
      true,
    );
  if (code === 12) return blind("nvidia-smi does not find the driver's library (libnvidia-ml).");
  return unsure(`nvidia-smi ended with ${code}${unknown === undefined ? " and said nothing" : `: ${unknown}`}`);
}
