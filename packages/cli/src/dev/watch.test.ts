import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { watchFolder } from "./watch.js";

it("What is saved before somebody listens is told, and what an editor makes and removes again is not", async (test) => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-watch-"));
  test.onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "requirements.txt"), "one");
  const watch = await watchFolder(folder, (error) => expect.fail(String(error)));
  test.onTestFinished(() => watch.close());
  const other = await watchFolder(folder, (error) => expect.fail(String(error)));
  test.onTestFinished(() => other.close());
  const settled = new Promise((resolve) => other.onChange(resolve));
  writeFileSync(join(folder, "requirements.txt"), "another");
  writeFileSync(join(folder, "4913"), "");
  rmSync(join(folder, "4913"));
  await settled; // by now nobody was told
  const told: (readonly string[])[] = [];
  watch.onChange((files) => void told.push(files));
  await vi.waitFor(() => expect(told).toEqual([["requirements.txt"]]));
  writeFileSync(join(folder, "handler.py"), "");
  await vi.waitFor(() => expect(told).toEqual([["requirements.txt"], ["handler.py"]]));
});
