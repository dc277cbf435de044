import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { blocksOf } from "../docs/guide/blocks.js";
import { runPage } from "../docs/guide/run-page.js";
import { FakeNvidiaSmi, fakeGpu } from "./fake-nvidia-smi.js";

// docs/guide/gpus.md
it("the page leads from a driver's GPUs to a job that has one of them", { timeout: 120_000 }, async (test) => {
  const fake = new FakeNvidiaSmi({ gpus: [fakeGpu(0), fakeGpu(1)] });
  const handler = mkdtempSync(join(tmpdir(), "millrace-gpu-"));
  test.onTestFinished(() => {
    fake.remove();
    rmSync(handler, { recursive: true, force: true });
  });
  const source = "export default ({ prompt }) => ({ prompt, gpu: process.env.CUDA_VISIBLE_DEVICES });\n";
  writeFileSync(join(handler, "handler.mjs"), source);
  const blocks = blocksOf("gpus").filter(({ words }) => words.test === "tests/gpu/guide.test.ts");
  const { code, output, report } = await runPage(blocks, {
    startsService: false,
    env: { PATH: fake.path },
    instead: { "me/gpu-worker:1": handler },
  });
  expect(code, report).toBe(0);
  const [driver, types, , job] = blocks.map(({ line }) => output.get(line) ?? "");
  const { uuid } = fakeGpu(1);
  expect(driver).toContain(`1, ${uuid}, NVIDIA L4, 23034 MiB, 550.90.12`);
  const { data } = JSON.parse(types ?? "");
  expect(data.gpuTypes).toContainEqual({ id: "NVIDIA L4", memoryInGb: 24, maxGpuCount: 2 });
  const done = JSON.parse(job ?? "");
  expect(done).toMatchObject({ status: "COMPLETED", output: { prompt: "hello" } });
  expect(done.output.gpu).toMatch(/^GPU-5f1c3a9e-/);
});
