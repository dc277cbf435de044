import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { snippets } from "../../../packages/dashboard/src/pages/endpoint/snippets.js";
import { python } from "../../compat/stock.js";
import { root } from "../../harness.js";
import { useDashboard } from "./visit.js";

const dashboard = useDashboard();
/** In the repository, so that a script in it finds `@millrace/api`. */
const folder = mkdtempSync(join(root, ".cache/snippets-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let endpointId: string;
beforeAll(async () => {
  const imageName = dashboard.handler("export default ({ text }) => ({ shouted: text.toUpperCase() });");
  const template = await dashboard.api("POST", "/v1/templates", { name: "t", imageName, isServerless: true });
  endpointId = (await dashboard.api("POST", "/v1/endpoints", { name: "shout", templateId: template.id })).id;
});

/** What a shell would make something else of, if it were not quoted. */
const text = `it's "quoted" $HOME \\n`;
const wanted = text.toUpperCase();

async function run(name: keyof typeof snippets): Promise<string> {
  const { url, key } = dashboard.server;
  const snippet = snippets[name]({ url, endpointId, input: JSON.stringify({ text }) });
  const file = (ending: string) => {
    const path = join(folder, `snippet.${ending}`);
    writeFileSync(path, snippet);
    return path;
  };
  const commands: Record<string, readonly [string, string[]]> = {
    curl: ["sh", ["-c", snippet]],
    "command line": ["sh", ["-c", snippet]],
    Python: [python(), [file("py")]],
    TypeScript: [process.execPath, [file("ts")]],
  };
  const [command, args] = commands[name] as readonly [string, string[]];
  const env = { ...process.env, MILLRACE_API_KEY: key, NO_COLOR: "1" };
  return (await promisify(execFile)(command, args, { cwd: root, env })).stdout;
}

describe("What Try it offers to paste", () => {
  it.each(["curl", "command line", "Python", "TypeScript"] as const)("works as it stands: %s", async (name) => {
    // each client prints quotes and backslashes in its own way
    const bare = (said: string) => said.replaceAll(/[\\'"]/g, "");
    expect(bare(await run(name))).toContain(bare(wanted));
  });

  it("names the base URL for OpenAI's clients", () => {
    const said = snippets["OpenAI client"]({ url: "http://127.0.0.1:8000", endpointId: "e1", input: "{}" });
    expect(said).toContain('base_url="http://127.0.0.1:8000/v2/e1/openai/v1"');
  });
});
