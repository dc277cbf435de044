import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { startServer, type TestServer, until } from "../harness.js";
import { linesOf, podsOf } from "../pods/pod-calls.js";

const image = "millrace-test/pod:1";
/** Notes its start in its volume, then answers HTTP with its pod's id. */
const program = `
const { appendFileSync } = require("node:fs");
appendFileSync("/data/starts", process.env.RUNPOD_POD_ID + "\\n");
require("node:http").createServer((_, reply) => reply.end(process.env.RUNPOD_POD_ID)).listen(8888);
process.on("SIGTERM", () => process.exit(0));
`;

let engine: TestDocker;
let server: TestServer;
let pods: ReturnType<typeof podsOf>;
beforeAll(async () => {
  engine = await startDocker();
  makeNodeImage(engine, image, {});
  server = await startServer({ DOCKER_HOST: engine.host, MILLRACE_STOP_GRACE: "5" }, { podVolumesGapMs: 200 });
  pods = podsOf(server);
}, 150_000);
afterAll(async () => {
  await server?.end();
  await engine?.end();
}, 150_000);

const made = {
  imageName: image,
  dockerEntrypoint: [process.execPath],
  dockerStartCmd: ["-e", program],
  volumeInGb: 1,
  volumeMountPath: "/data",
  ports: ["8888/http"],
};
const containersOf = (id: string) =>
  engine
    .docker("ps", "--no-trunc", "--filter", "status=running", "--format", "{{.ID}} {{.Mounts}}")
    .split("\n")
    .filter((line) => line.includes(id));
const volumeOf = (id: string) => join(server.dataDir, "volumes", `pod-${id}`);
const startsOf = (id: string, count: number) =>
  linesOf(() => (existsSync(volumeOf(id)) ? readFileSync(join(volumeOf(id), "starts"), "utf8") : undefined), count);
/** Waits until it answers on the port that is published for it. */
const answer = (id: string) =>
  until(async () => {
    const { portMappings, privateIp } = await pods.show(id);
    if (!privateIp && !portMappings) return undefined;
    const reply = await fetch(`http://${privateIp}:8888/`).catch(() => undefined);
    return reply?.text();
  }, 60_000);

describe("A pod in a container", () => {
  it("answers on its port, survives kills of the server and restarts of the engine, and keeps its volume", async () => {
    const { id } = await pods.create(made);
    expect(await answer(id)).toBe(id);
    await startsOf(id, 1);

    await server.kill();
    await server.restart();
    expect((await pods.until(id, ({ status }) => status === "RUNNING")).id).toBe(id);
    expect((await startsOf(id, 1)).length).toBe(1);

    const [container = ""] = engine.docker("ps", "-q", "--filter", "name=millrace-").split("\n");
    engine.docker("kill", container);
    expect(await startsOf(id, 2)).toEqual([id, id]);
    await pods.until(id, ({ status }) => status === "RUNNING");

    await engine.stop();
    await engine.start();
    await pods.until(id, ({ status }) => status === "RUNNING");
    expect(await answer(id)).toBe(id);

    const starts = (await startsOf(id, 2)).length;
    await pods.act(id, "stop");
    await until(() => engine.docker("ps", "-q", "--filter", "name=millrace-").trim() === "", 60_000);
    expect(existsSync(volumeOf(id))).toBe(true);
    await pods.act(id, "start");
    await startsOf(id, starts + 1);

    await pods.remove(id);
    await until(() => !existsSync(volumeOf(id)) && containersOf(id).length === 0, 60_000);
  });
});
