import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../../harness.js";
import { type Block, blocksOf, writtenPages } from "./blocks.js";
import { runPage } from "./run-page.js";

/** Blocks that are run as commands, and those that a tool of their own reads. */
const isRun = ({ language, words }: Block) =>
  words.file !== undefined || (language === "sh" && words.test === undefined && words.hardware === undefined);

const oneSpace = (text: string) => text.trim().replaceAll(/\s+/g, " ");

/** Text as it is printed, with `…` for what differs from run to run. */
function pattern(text: string): RegExp {
  const parts = oneSpace(text).split("…");
  return new RegExp(parts.map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*"));
}

/** Blocks that no test runs, and why. Their syntax is checked here, their options in tests/deploy/options.test.ts. */
const unrun = {
  "gpus: sudo apt-get update": "installs a GPU's driver, and reboots the machine",
  "gpus: sudo apt-get install -y docker.io curl": "changes the machine's container engine for its GPUs",
  "gpus: docker run --rm --gpus all debian:stable-slim nvidia-smi -L": "needs a GPU and its driver",
  "deployment: sudo systemctl daemon-reload": "needs a machine that systemd has started, and root",
  "deployment: docker compose -f deploy/compose.yaml up -d --build      # then http://127.0.0.1:8000, with the MILLRACE_API_KEY of deploy/.env":
    "pulls the images of PostgreSQL and nginx from their registry",
};

it("Few blocks are only read, each for a reason", () => {
  const found = writtenPages.flatMap((page) =>
    blocksOf(page)
      .filter(({ words }) => words.hardware !== undefined)
      .map(({ text }) => `${page}: ${text.split("\n")[0]}`),
  );
  expect(found).toEqual(Object.keys(unrun));
});

describe.each(writtenPages)("The page %s", (page) => {
  const blocks = blocksOf(page);

  it("has only blocks that a test runs or reads", () => {
    for (const { language, words, text, line } of blocks) {
      const where = `${page}.md, line ${line}`;
      if (words.test !== undefined) {
        expect(existsSync(join(root, words.test)), `${where}: ${words.test}`).toBe(true);
        const runsIt = readFileSync(join(root, words.test), "utf8").includes(`docs/guide/${page}.md`);
        expect(runsIt, `${where}: ${words.test} does not name this page`).toBe(true);
      } else if (words.file !== undefined) continue;
      else if (words.output !== undefined || words.diagram !== undefined) expect(language, where).toBe("text");
      else if (language === "json") expect(() => JSON.parse(text), where).not.toThrow();
      else if (words.hardware !== undefined) {
        const { status, stderr } = spawnSync("bash", ["-n"], { input: text, encoding: "utf8" });
        expect({ status, stderr }, where).toEqual({ status: 0, stderr: "" });
      } else expect(language, `${where}: nothing runs this block`).toBe("sh");
    }
  });

  const run = blocks.filter(isRun);
  if (run.length === 0) return;
  it("does what it says", { timeout: 300_000 }, async () => {
    const { code, output, report } = await runPage(run);
    expect(code, `${page}.md ${report}`).toBe(0);
    for (const [at, { words, text, line }] of blocks.entries()) {
      if (words.output === undefined) continue;
      const printed = output.get(blocks[at - 1]?.line ?? 0) ?? "";
      expect(oneSpace(printed), `${page}.md, line ${line}`).toMatch(pattern(text));
    }
  });
});
