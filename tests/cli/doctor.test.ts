import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort, startServer, type TestServer } from "../harness.js";
import { millrace, startOnTerminal, toServer } from "./millrace.js";

let server: TestServer;
let folder: string;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "millrace-doctor-"));
});
afterAll(async () => {
  await server?.end();
  rmSync(folder, { recursive: true, force: true });
});

const config = () => ({ MILLRACE_CONFIG_DIR: join(folder, "config") });
type Finding = { what: string; is: string; words: string; mend?: string };
async function findings(env: Record<string, string>): Promise<Record<string, Finding>> {
  const { out } = await millrace(["doctor", "--json"], { env: { ...config(), ...env }, folder });
  return Object.fromEntries((JSON.parse(out) as Finding[]).map((each) => [each.what, each]));
}

it("Everything is fine with a server that answers", async () => {
  const { exit, out } = await millrace(["doctor"], { env: { ...config(), ...toServer(server) }, folder });
  expect(exit).toBe(0);
  for (const what of ["runtime", "Python", "disk", "server", "database", "key", "clock"])
    expect(out).toMatch(new RegExp(`^ {2}✓ ${what} +\\S`, "m"));
  expect(out).not.toMatch(/port/); // the server has it
});

it("What is missing is named with the command that mends it, and is no failure", async () => {
  const found = await findings({ PATH: folder, DOCKER_HOST: `unix://${folder}/none.sock` });
  expect(found.Python).toMatchObject({ is: "missing", mend: "sudo apt install python3 python3-venv" });
  expect(found.Docker).toMatchObject({
    is: "missing",
    words: expect.stringContaining("none.sock"),
    mend: "sudo apt install docker.io",
  });
  expect(found.server).toMatchObject({ is: "missing", mend: "npm start" });
  for (const each of Object.values(found)) expect(each.is === "fine").toBe(each.mend === undefined);
});

it("In a narrow terminal what is said is wrapped between words, and commands to paste stay whole", async (test) => {
  const env = { ...config(), NO_COLOR: "1", DOCKER_HOST: `unix://${folder}/a-long-name-of-a/socket-that-is/none.sock` };
  const shown = startOnTerminal(test, ["doctor"], { env, folder, columns: 60 });
  await shown.ended;
  const lines = shown.screen().split(/\r*\n/);
  const commands = lines.filter((line) => /^ {14}(sudo|npm|npx|millrace) /.test(line));
  expect(commands.length).toBeGreaterThan(0);
  for (const line of lines.filter((each) => !commands.includes(each) && !each.includes(folder)))
    expect(line.length).toBeLessThanOrEqual(60);
  expect(lines.join(" ").replace(/\s+/g, " ")).toMatch(/images as workers, and pods, need one/);
});

it("A port that another program has, and a key that is refused, are failures", async (test) => {
  const other = createServer().listen(await freePort(), "127.0.0.1");
  test.onTestFinished(() => void other.close());
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  expect((await findings({ MILLRACE_PORT: String(port) })).port).toMatchObject({
    is: "wrong",
    mend: expect.stringContaining(`MILLRACE_PORT=${port + 1}`),
  });
  const refused = { MILLRACE_URL: server.url, MILLRACE_API_KEY: "mr_wrong" };
  expect((await findings(refused)).key).toMatchObject({
    is: "wrong",
    words: "refused",
    mend: `millrace context add NAME --url ${server.url}`,
  });
  expect((await millrace(["doctor"], { env: { ...config(), ...refused }, folder })).exit).toBe(1);
});
