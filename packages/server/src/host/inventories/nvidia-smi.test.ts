import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeNvidiaSmi, fakeGpu } from "../../../../../tests/gpu/fake-nvidia-smi.js";
import { machineInventory } from "./machine.js";
import { NvidiaSmi } from "./nvidia-smi.js";

let fake: FakeNvidiaSmi;
beforeEach(() => {
  fake = new FakeNvidiaSmi({ gpus: [fakeGpu(0), fakeGpu(1, "NVIDIA A40", 46_068)] });
});
afterEach(() => fake.remove());

const look = (answerMs?: number) => new NvidiaSmi({ PATH: fake.path }, answerMs).look();
const indexes = ({ gpus }: { gpus: readonly { index: number }[] | undefined }) => gpus?.map(({ index }) => index);
const [first, second] = [fakeGpu(0).uuid, fakeGpu(1).uuid];

/** The program's exit code and output for these arguments. */
function said(...args: string[]): [number, string] {
  try {
    return [0, execFileSync("nvidia-smi", args, { env: { PATH: fake.path }, encoding: "utf8" })];
  } catch (error) {
    const { status, stdout } = error as { status: number; stdout: string };
    return [status, stdout];
  }
}

describe("The GPUs of this machine", () => {
  it("are named with their id, type, memory and driver", async () => {
    expect(await look()).toEqual({
      gpus: [
        { id: first, index: 0, name: "NVIDIA L4", memoryMib: 23_034, driver: "550.90.12" },
        { id: second, index: 1, name: "NVIDIA A40", memoryMib: 46_068, driver: "550.90.12" },
      ],
      hasGpus: true,
      problems: [],
    });
  });

  it("are found even if the driver does not know MIG, which is queried only once", async () => {
    fake.set({ driver: "440.33.01", refused: ["mig.mode.current"] });
    const smi = new NvidiaSmi({ PATH: fake.path });
    expect(indexes(await smi.look())).toEqual([0, 1]);
    expect(indexes(await smi.look())).toEqual([0, 1]);
    expect(fake.calls().filter((call) => call.includes("mig"))).toHaveLength(1);
  });

  it("may have odd spaces in their names, and no dedicated memory", async () => {
    fake.set({ gpus: [fakeGpu(0, "NVIDIA   RTX  A4500 "), fakeGpu(1, "NVIDIA GB10", undefined)] });
    fake.change(1, { memoryMib: undefined });
    const { gpus } = await look();
    expect(gpus?.map(({ name, memoryMib }) => [name, memoryMib])).toEqual([
      ["NVIDIA RTX A4500", 23_034],
      ["NVIDIA GB10", 0],
    ]);
  });

  it("in MIG mode count as whole GPUs, and the log says so", async () => {
    fake.change(1, { mig: "Enabled" });
    const found = await look();
    expect(indexes(found)).toEqual([0, 1]);
    expect(found.problems).toEqual([expect.stringContaining(`GPU 1 (${second}) is in MIG mode`)]);
  });

  it("that need a reset are not given out", async () => {
    fake.change(0, { health: "reset" });
    const found = await look();
    expect(indexes(found)).toEqual([1]);
    expect(found.problems).toEqual([expect.stringContaining(`GPU 0 (${first}) does not work (GPU requires reset)`)]);
  });

  it.each([
    ["610.57.04", "unreachable", "GPU1: 0000:11:00.0 cannot be reached (Unknown Error)."],
    ["535.129.03", "unreachable", "GPU0000:11:00.0 cannot be reached (Unknown Error)."],
    ["470.63.01", "unreachable", "GPU 0000:11:00.0 cannot be reached (Unknown Error)."],
    [
      "610.57.04",
      "lost",
      "GPU1: 0000:11:00.0 cannot be reached (GPU is lost.  Reboot the system to recover this GPU).",
    ],
    ["470.63.01", "lost", "GPU 0000:11:00.0 cannot be reached (GPU is lost.  Reboot the system to recover this GPU)."],
  ] as const)("work with driver %s when another GPU is %s", async (driver, health, problem) => {
    fake.set({ driver, gpus: [fakeGpu(0), fakeGpu(1), fakeGpu(2)] });
    fake.change(1, { health });
    expect(await look()).toMatchObject({ hasGpus: true, problems: [problem] });
    expect(indexes(await look())).toEqual([0, 2]);
  });

  it("are none after all have failed, but the machine still counts as having GPUs", async () => {
    for (const driver of ["470.63.01", "580.10.01"]) {
      fake.set({ driver, gpus: [{ ...fakeGpu(0), health: "lost" }] });
      expect(await look()).toMatchObject({ gpus: [], hasGpus: true });
    }
  });

  it.each([
    ["no-driver", [], false, /cannot speak to the driver/],
    ["no-library", [], false, /libnvidia-ml/],
    ["mismatch", [], true, /restart the machine/],
    ["nvml", undefined, true, /ended with 255: Failed to initialize NVML: Unknown Error/],
    ["garbage", undefined, true, /ended with 0: Segmentation fault {2}\[31m\(core dumped\)/],
    ["flood", undefined, true, /could not be run \(stdout maxBuffer length exceeded/],
  ] as const)("are unknown if nvidia-smi prints '%s'", async (mode, gpus, hasGpus, words) => {
    fake.set({ mode });
    const isBlind = gpus && { isBlind: true };
    expect(await look()).toEqual({ gpus, hasGpus, problems: [expect.stringMatching(words)], ...isBlind });
  });

  it("are none if nvidia-smi finds none or is not installed", async () => {
    fake.set({ gpus: [] });
    expect(await look()).toEqual({ gpus: [], hasGpus: false, problems: ["nvidia-smi finds no GPU."] });
    const elsewhere = new NvidiaSmi({ PATH: "/nowhere" });
    expect(await elsewhere.look()).toMatchObject({ gpus: [], hasGpus: false, problems: [/on the PATH/] });
  });

  it("are unknown while nvidia-smi hangs, and known again when it answers", async () => {
    fake.set({ mode: "hang" });
    const smi = new NvidiaSmi({ PATH: fake.path }, 1_000);
    expect(await smi.look()).toMatchObject({ gpus: undefined, hasGpus: true, problems: [/did not answer/] });
    fake.set({ mode: "ok" });
    await expect.poll(async () => indexes(await smi.look())).toEqual([0, 1]);
  });

  it("are not awaited if another process holds the pipes of a killed nvidia-smi", async () => {
    fake.set({ mode: "held" });
    const smi = new NvidiaSmi({ PATH: fake.path }, 1_000);
    expect(await smi.look()).toMatchObject({ gpus: undefined, problems: [/did not answer/] });
    fake.set({ mode: "ok" });
    await expect.poll(async () => indexes(await smi.look())).toEqual([0, 1]);
  });

  it("are listed by a program that gets none of our secrets", async () => {
    const smi = new NvidiaSmi({ PATH: fake.path, MILLRACE_API_KEY: "secret" });
    expect(indexes(await smi.look())).toEqual([0, 1]);
    expect(fake.environment()).toContain("PATH");
    expect(fake.environment()).not.toContain("MILLRACE_API_KEY");
  });
});

describe("The GPUs that workers may be given", () => {
  const read = (chosen: "all" | readonly string[]) => machineInventory(chosen, { PATH: fake.path }).read();

  it.each([
    ["all", [0, 1]],
    [["1"], [1]],
    [[first.toUpperCase().replace("GPU-", "GPU-")], [0]],
    [
      ["0", second],
      [0, 1],
    ],
  ] as const)("are those of the setting: %j", async (chosen, expected) => {
    const stock = await read(chosen);
    expect([indexes(stock), stock.problems]).toEqual([expected, []]);
  });

  it("are none if the setting says so, and then nvidia-smi is not run", async () => {
    expect(await read([])).toMatchObject({ gpus: [], hasGpus: false, problems: [/turned off/] });
    expect(fake.calls()).toEqual([]);
  });

  it("that are named but missing are reported, while problems of other GPUs are not", async () => {
    fake.change(0, { mig: "Enabled" });
    const stock = await read(["1", "7"]);
    expect(indexes(stock)).toEqual([1]);
    expect(stock.problems).toEqual([expect.stringContaining("names '7'")]);
  });

  it("come with the processors and the memory of the machine", async () => {
    const { cpus, memoryMib } = await read("all");
    expect([Number.isInteger(cpus) && cpus >= 1, memoryMib > 100]).toEqual([true, true]);
  });
});

describe("The fake nvidia-smi", () => {
  it.each([
    [["--query-gpu=index"], 2, "Invalid combination of input arguments."],
    [["--query-gpu=index", "--format=xml"], 2, "Invalid combination of input arguments."],
    [["--list-everything"], 2, "Invalid combination of input arguments."],
    [["--query-gpu=index,cuda_version", "--format=csv"], 2, 'Field "cuda_version" is not a valid field to query.'],
    [["-i", "7", "--query-gpu=index", "--format=csv"], 6, "No devices were found"],
    [["-L"], 0, `GPU 0: NVIDIA L4 (UUID: ${first})`],
  ])("answers %j with %i", (args, code, words) => {
    const [ended, text] = said(...args);
    expect([ended, text]).toEqual([code, expect.stringContaining(words)]);
  });

  it("has header and units unless they are turned off", () => {
    expect(said("--query-gpu=index,memory.total", "--format=csv")).toEqual([
      0,
      "index, memory.total [MiB]\n0, 23034 MiB\n1, 46068 MiB\n",
    ]);
  });
});
