import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { Noise, watchFolder } from "./watch.js";

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

it("A file that a program writes again and again counts no more; code and what people save always do", () => {
  const noise = new Noise();
  const told = (files: string[], at: number) => noise.sift(files, at);
  for (const at of [0, 1_000, 2_000])
    expect(told(["out.json", "handler.py"], at)).toEqual({ heard: ["out.json", "handler.py"], silenced: [] });
  expect(told(["out.json", "handler.py"], 3_000)).toEqual({ heard: ["handler.py"], silenced: ["out.json"] });
  expect(told(["out.json"], 60_000)).toEqual({ heard: [], silenced: [] });
  for (let at = 0; at < 100_000; at += 5_000) expect(told(["model.bin"], at).heard).toEqual(["model.bin"]);
});

it("Logs and hidden files are no one's edits, but .env is", async (test) => {
  const folder = mkdtempSync(join(tmpdir(), "millrace-watch-"));
  test.onTestFinished(() => rmSync(folder, { recursive: true }));
  const watch = await watchFolder(folder, (error) => expect.fail(String(error)));
  test.onTestFinished(() => watch.close());
  const told: (readonly string[])[] = [];
  watch.onChange((files) => void told.push(files));
  for (const name of ["dev.log", ".envrc", ".cache", ".env"]) writeFileSync(join(folder, name), "A=1");
  await vi.waitFor(() => expect(told).toEqual([[".env"]]));
});
