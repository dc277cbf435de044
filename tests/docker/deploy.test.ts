import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { millrace, toServer } from "../cli/millrace.js";
import { startServer, type TestServer } from "../harness.js";

let engine: TestDocker;
let server: TestServer;
let root: string;
let folder: string;
beforeAll(async () => {
  engine = await startDocker();
  root = mkdtempSync(join(tmpdir(), "millrace-build-"));
  folder = join(root, "Shout It");
  mkdirSync(folder);
  writeFileSync(join(folder, "handler.mjs"), "export default () => 'of the base';");
  makeNodeImage(engine, "millrace-test/base:1", { handler: join(folder, "handler.mjs") });
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" });
}, 120_000);
afterAll(async () => {
  await server?.end();
  await engine?.end();
  rmSync(root, { recursive: true, force: true });
});

/** With the engine's own command line, which comes first on this PATH. */
const run = (...words: string[]) =>
  millrace(words, { folder, env: { ...toServer(server), DOCKER_HOST: engine.host, PATH: "/usr/bin:/bin" } });

it("millrace deploy --build builds the folder's Dockerfile, and runs the new image at each deployment", async () => {
  writeFileSync(join(folder, "Dockerfile"), "FROM millrace-test/base:1\nCOPY handler.mjs /app/handler.mjs\n");
  for (const word of ["first", "second"]) {
    writeFileSync(join(folder, "handler.mjs"), `export default () => ${JSON.stringify(word)};`);
    const deployed = await run("deploy", ".", "--build", "--name", "shout");
    expect(deployed).toMatchObject({ exit: 0, err: expect.stringMatching(/^building millrace\/shout:\w+ …\n$/) });
    expect(deployed.out).toMatch(/✓ image +millrace\/shout:\w+\n.*✓ template shout +millrace\/shout:\w+\n/);
    expect(await run("run", "shout", "{}")).toMatchObject({ exit: 0, out: `${word}\n` });
  }
  expect(engine.docker("images", "--format", "{{.Repository}}").split("\n")).toContain("millrace/shout");
}, 180_000);

it("what does not build is said with the builder's own words, and nothing is saved", async () => {
  writeFileSync(join(folder, "Dockerfile"), "FROM millrace-test/base:1\nCOPY nowhere.txt /\n");
  const failed = await run("deploy", ".", "--build", "--name", "broken");
  expect(failed).toMatchObject({ exit: 1, out: "" });
  expect(failed.err).toMatch(/The image could not be built:[\s\S]*nowhere\.txt[\s\S]*docker build /);
  expect((await run("endpoint", "list")).out).not.toContain("broken");
}, 60_000);
