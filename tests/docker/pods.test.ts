import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../scripts/docker.mjs";
import { makeNodeImage } from "../../scripts/images.mjs";
import { call, startServer, type TestServer, until } from "../harness.js";
import { linesOf, podsOf } from "../pods/pod-calls.js";

const image = "millrace-test/pod:1";
/** Notes its start in its volume, then answers HTTP and TCP with its pod's id. */
const program = `
const { appendFileSync } = require("node:fs");
const id = process.env.RUNPOD_POD_ID;
appendFileSync("/data/starts", id + "\\n");
require("node:http").createServer((_, reply) => reply.end(id)).listen(8888);
require("node:net").createServer((socket) => socket.end(id)).listen(2222);
process.on("SIGTERM", () => process.exit(0));
`;

let engine: TestDocker;
let server: TestServer;
let pods: ReturnType<typeof podsOf>;
beforeAll(async () => {
  engine = await startDocker();
  makeNodeImage(engine, image, {});
  const env = { DOCKER_HOST: engine.host, MILLRACE_DOCKER_PUBLISH: "127.0.0.1", MILLRACE_STOP_GRACE: "5" };
  server = await startServer(env, { podVolumesGapMs: 200 });
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
  ports: ["8888/http", "2222/tcp"],
};
const containersOf = (id: string) =>
  engine
    .docker("ps", "--no-trunc", "--filter", "status=running", "--format", "{{.ID}} {{.Mounts}}")
    .split("\n")
    .filter((line) => line.includes(id));
const volumeOf = (id: string) => join(server.dataDir, "volumes", `pod-${id}`);
const startsOf = (id: string, count: number) =>
  linesOf(() => (existsSync(volumeOf(id)) ? readFileSync(join(volumeOf(id), "starts"), "utf8") : undefined), count);

const http = (ip: string, port: number) => fetch(`http://${ip}:${port}/`).then((reply) => reply.text());
const tcp = (ip: string, port: number) => text(connect(port, ip));
const runtimeOf = async (id: string): Promise<{ ports: object[] } | null> => {
  const ports = "ports { ip isIpPublic privatePort publicPort type }";
  const query = `{ pod(input: { podId: "${id}" }) { runtime { ${ports} } } }`;
  return (await call(server, "POST", "/graphql", { query })).body.data.pod.runtime;
};

/** Waits until a pod answers at the addresses that are announced for its ports, and resolves with its answers there. */
const answers = (id: string): Promise<string[]> =>
  until(async () => {
    const { portMappings, publicIp } = await pods.show(id);
    if (!portMappings || !publicIp) return undefined;
    const asked = [http(publicIp, portMappings[8888]), tcp(publicIp, portMappings[2222])];
    const got = await Promise.all(asked).catch(() => undefined); // its process may not listen yet
    if (got === undefined || got.includes("")) return undefined;
    const at = { ip: publicIp, isIpPublic: true };
    expect((await runtimeOf(id))?.ports).toEqual([
      { ...at, privatePort: 8888, publicPort: portMappings[8888], type: "http" },
      { ...at, privatePort: 2222, publicPort: portMappings[2222], type: "tcp" },
    ]);
    return got;
  }, 60_000);

describe("A pod in a container", () => {
  it("answers where its ports are announced, survives kills of the server and restarts of the engine, and keeps its volume", async () => {
    const { id } = await pods.create(made);
    const both = [id, id];
    expect(await answers(id)).toEqual(both);
    await startsOf(id, 1);

    await server.kill();
    await server.restart();
    expect((await pods.until(id, ({ status }) => status === "RUNNING")).id).toBe(id);
    expect((await startsOf(id, 1)).length).toBe(1);
    expect(await answers(id)).toEqual(both);

    const [container = ""] = engine.docker("ps", "-q", "--filter", "name=millrace-").split("\n");
    engine.docker("kill", container);
    expect(await startsOf(id, 2)).toEqual([id, id]);
    await pods.until(id, ({ status }) => status === "RUNNING");
    expect(await answers(id)).toEqual(both);

    await engine.stop();
    await engine.start();
    await pods.until(id, ({ status }) => status === "RUNNING");
    expect(await answers(id)).toEqual(both);

    const starts = (await startsOf(id, 2)).length;
    await pods.act(id, "stop");
    await until(() => engine.docker("ps", "-q", "--filter", "name=millrace-").trim() === "", 60_000);
    expect(existsSync(volumeOf(id))).toBe(true);
    expect(await pods.show(id)).toMatchObject({ portMappings: null, publicIp: null });
    await pods.act(id, "start");
    await startsOf(id, starts + 1);
    expect(await answers(id)).toEqual(both);

    await pods.remove(id);
    await until(() => !existsSync(volumeOf(id)) && containersOf(id).length === 0, 60_000);
  });
});
