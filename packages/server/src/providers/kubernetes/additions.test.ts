import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { additionsIn } from "./additions.js";

const folder = mkdtempSync(join(tmpdir(), "millrace-additions-"));
afterAll(() => rmSync(folder, { recursive: true }));
const path = join(folder, "pods.yaml");
function read(text: string) {
  writeFileSync(path, text);
  return additionsIn(path);
}

describe("The file with what pods have besides", () => {
  it("has what all pods have, and classes that have all of it and more", () => {
    const { all, classes } = read(`
metadata: { labels: { team: a, queue: small } }
spec: { nodeSelector: { pool: x }, priorityClassName: low, tolerations: [{ key: gpu }] }
---
name: spot
metadata: { labels: { queue: large } }
spec: { nodeSelector: { capacity: spot }, priorityClassName: high, tolerations: [{ key: spot }] }
---
name: plain
`);
    expect(all.spec).toMatchObject({ nodeSelector: { pool: "x" }, priorityClassName: "low" });
    expect(classes.get("spot")).toMatchObject({
      metadata: { labels: { team: "a", queue: "large" } },
      spec: {
        nodeSelector: { pool: "x", capacity: "spot" },
        priorityClassName: "high",
        tolerations: [{ key: "gpu" }, { key: "spot" }],
      },
    });
    expect(classes.get("plain")?.spec).toMatchObject({ nodeSelector: { pool: "x" }, priorityClassName: "low" });
  });

  it("may have classes alone", () => {
    expect(read("name: spot\nspec: { nodeSelector: { capacity: spot } }")).toMatchObject({ all: {} });
  });

  it.each([
    ["", "is empty"],
    ["spec: { nodeSelector: [", "is not YAML"],
    ["- spec", "is not a pod template"],
    ["spec: text", "is not a pod template"],
    ["kind: Pod", "is not a pod template"],
    ["name: ''", "is not a pod template"],
    ["name: 7", "is not a pod template"],
    [`name: ${"x".repeat(64)}`, "is not a pod template"],
    ["spec: { containers: [] }", "sets spec.containers, which is not its to set"],
    ["name: a\nspec: { restartPolicy: Always }", "sets spec.restartPolicy, which is not its to set"],
    ["name: a\n---\nname: a", "has two documents named a"],
    ["spec: {}\n---\nspec: {}", "has two documents without a name"],
  ])("is refused in one sentence: %j", (text, words) => {
    expect(() => read(text)).toThrow(`${path} (MILLRACE_KUBERNETES_POD) ${words}`);
  });
});
