import { describe, expect, it } from "vitest";
import { newWorker } from "../../testing/facts-fixture.js";
import type { Exit, Worker } from "./worker.js";
import { endOf } from "./worker-end.js";

const exit = (more: Partial<Exit> = {}): Exit => ({ ...more });
const of = (ended: Partial<Exit>, tail = "", worker: Partial<Worker> = {}) => {
  const end = endOf({ ...newWorker, ...worker }, exit(ended), tail);
  return [end.exit.cause, end.exit.note];
};

describe("The cause of a worker's end is recognised:", () => {
  it.each<[string, Partial<Exit>, string, ReturnType<typeof of>]>([
    ["an exit", { code: 2 }, "", [undefined, "it ended with exit code 2"]],
    [
      "the end of a program that serves nothing",
      { code: 0 },
      "",
      [
        undefined,
        'it ended with exit code 0 before it was ready; a handler in Python ends with runpod.serverless.start({"handler": handler})',
      ],
    ],
    [
      "an exit at its start, with the last lines",
      { code: 1 },
      "ModuleNotFoundError: No module named 'torch'",
      [
        "start",
        "it ended with exit code 1: ModuleNotFoundError: No module named 'torch'; name its package in requirements.txt and deploy the folder with millrace deploy, which installs it; an image needs it built in",
      ],
    ],
    [
      "an exit at its start, without what the stock package always says",
      { code: 3 },
      "--- Starting Serverless Worker |  Version 1.12.0 ---\ngiving up",
      ["start", "it ended with exit code 3: giving up"],
    ],
    [
      "a kill by the system",
      { signal: "SIGKILL" },
      "loading",
      ["memory", "it was ended by SIGKILL, as the system does where memory runs out: loading"],
    ],
    [
      "the same in a shell",
      { code: 137 },
      "",
      ["memory", "it ended with exit code 137, as the system does where memory runs out"],
    ],
    [
      "a missing GPU",
      { code: 1 },
      "RuntimeError: Found no NVIDIA driver on your system.",
      [
        "gpu",
        "it ended with exit code 1, as it found no GPU that it could use: RuntimeError: Found no NVIDIA driver on your system.",
      ],
    ],
    [
      "a cause that its provider reports",
      { code: 137, note: "the engine ran out of memory for it", cause: "memory" },
      "",
      ["memory", "the engine ran out of memory for it"],
    ],
    ["a crash of its code", { signal: "SIGSEGV" }, "", [undefined, "it was ended by SIGSEGV"]],
  ])("%s", (_, ended, tail, expected) => {
    expect(of(ended, tail)).toEqual(expected);
  });

  it("a worker that the server killed has no cause", () => {
    expect(of({ signal: "SIGKILL" }, "", { killAt: 1 })).toEqual([undefined, "it was ended by SIGKILL"]);
    expect(of({ code: 143 }, "bye", { wanted: "stopped" })[0]).toBeUndefined();
  });

  it.each([
    "RuntimeError: No CUDA GPUs are available",
    "CUDA error: no CUDA-capable device is detected",
    "OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
    "CUDA driver version is insufficient for CUDA runtime version",
  ])("as a missing GPU, from: %s", (line) => {
    expect(of({ code: 1 }, line)[0]).toBe("gpu");
  });
});
