import { describe, expect, it } from "vitest";
import { limits } from "../../limits/index.js";
import type { Gpu } from "../hosts/gpu.js";
import type { Stock } from "../hosts/host.js";
import { type Known, takeIn } from "./stock.js";

const gpu = (index: number): Gpu => ({
  id: `GPU-${index}`,
  index,
  name: "NVIDIA L4",
  memoryMib: 23_034,
  driver: "550",
});
const here = (indexes: readonly number[] | undefined, problems: string[] = []): Stock => ({
  gpus: indexes?.map(gpu),
  hasGpus: indexes === undefined || indexes.length > 0,
  problems,
  cpus: 8,
  memoryMib: 32_000,
});
const settings = { location: "CZ", enforceGpus: undefined };

/** What is known after these checks, and the changes of the last one, by GPU index. */
function after(...stocks: Stock[]) {
  let known: Known | undefined;
  let change: ReturnType<typeof takeIn> | undefined;
  for (const stock of stocks) {
    change = takeIn(known, stock, settings);
    known = change.known;
  }
  const { found, back, lost } = change!;
  return {
    gpus: known!.facts.gpus.map(({ index }) => index),
    enforced: known!.facts.gpusEnforced,
    found: found.map(({ index }) => index),
    back: back.map(({ index }) => index),
    lost: lost.map(({ gpu: { index }, why }) => [index, why]),
  };
}
const nothing = { found: [], back: [], lost: [] };
const doubt = here(undefined, ["nvidia-smi did not answer."]);

describe("The stock of a host", () => {
  it("is what was found, with its location", () => {
    expect(takeIn(undefined, here([0], ["Odd."]), settings).known.facts).toEqual({
      location: "CZ",
      gpus: [gpu(0)],
      gpusEnforced: true,
      cpus: 8,
      memoryMib: 32_000,
      gpuProblem: "Odd.",
    });
    expect("gpuProblem" in takeIn(undefined, here([0]), settings).known.facts).toBe(false);
  });

  it.each([
    ["finds GPUs at the first check", [here([0, 1])], { gpus: [0, 1], ...nothing, found: [0, 1] }],
    ["finds nothing new at the second check", [here([0]), here([0])], { gpus: [0], ...nothing }],
    ["finds a GPU that was added", [here([0]), here([0, 1])], { gpus: [0, 1], ...nothing, found: [1] }],
    [
      "loses a GPU that is no longer listed",
      [here([0, 1]), here([1])],
      { gpus: [1], ...nothing, lost: [[0, "nvidia-smi no longer lists it."]] },
    ],
    [
      "loses a GPU that a problem names",
      [here([0, 1]), here([0], ["Something else.", "GPU 1 (GPU-1) does not work."])],
      { gpus: [0], ...nothing, lost: [[1, "GPU 1 (GPU-1) does not work."]] },
    ],
    [
      "finds a GPU that came back",
      [here([0, 1]), here([1]), here([1]), here([0, 1])],
      { gpus: [0, 1], ...nothing, back: [0] },
    ],
    [
      "loses the GPU again",
      [here([0]), here([]), here([0]), here([], ["Away."])],
      { gpus: [], ...nothing, lost: [[0, "Away."]] },
    ],
  ] as const)("%s", (_, stocks, expected) => {
    expect(after(...stocks)).toEqual({ enforced: true, ...expected });
  });
});

describe("An inconclusive check", () => {
  const doubts = (count: number) => Array.from({ length: count }, () => doubt);

  it("changes nothing at first", () => {
    expect(after(here([0]), ...doubts(limits.stockDoubtsMax - 1))).toEqual({ gpus: [0], enforced: true, ...nothing });
  });

  it("removes the GPUs if there are too many in a row", () => {
    const found = after(here([0]), ...doubts(limits.stockDoubtsMax));
    expect(found).toEqual({ gpus: [], enforced: true, ...nothing, lost: [[0, "nvidia-smi did not answer."]] });
  });

  it("is forgotten after a successful one", () => {
    const most = doubts(limits.stockDoubtsMax - 1);
    expect(after(here([0]), ...most, here([0]), ...most)).toMatchObject({ gpus: [0], lost: [] });
  });

  it("is reported, as is a check that no driver answered", () => {
    const unseen = (...stocks: Stock[]) => {
      let known: Known | undefined;
      for (const stock of stocks) ({ known } = takeIn(known, stock, settings));
      return known?.facts.gpusUnseen;
    };
    expect(unseen(doubt)).toBe(true);
    expect(unseen(here([0]), doubt)).toBe(true);
    expect(unseen(here([0]), { ...here([]), isBlind: true })).toBe(true);
    expect([unseen(here([0]), here([])), unseen(doubt, here([0]))]).toEqual([undefined, undefined]);
  });

  it("at the start gives out no GPU, and starts no worker without its GPU", () => {
    expect(after(doubt)).toEqual({ gpus: [], enforced: true, ...nothing });
  });
});

describe("GPU requirements hold", () => {
  it.each([
    ["nowhere without GPUs", [here([])], undefined, false],
    ["where there are GPUs", [here([0])], undefined, true],
    ["still where all of them were lost", [here([0]), here([]), here([])], undefined, true],
    ["where the operator requires them", [here([])], true, true],
    ["not where the operator disables them", [here([0])], false, false],
  ] as const)("%s", (_, stocks, enforceGpus, expected) => {
    let known: Known | undefined;
    for (const stock of stocks) ({ known } = takeIn(known, stock, { ...settings, enforceGpus }));
    expect(known?.facts.gpusEnforced).toBe(expected);
  });
});
