import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { startDocker, type TestDocker } from "../../../../../scripts/docker.mjs";
import { limits } from "../../limits/index.js";
import type { ImageSpec } from "../../provider.js";
import { providerContract } from "../contract.js";
import { endOf, type OpenedProvider, type Wish } from "../contracts/scene.js";
import { type DockerOptions, DockerProvider } from "./docker-provider.js";
import { openEngine } from "./engine.js";
import { engineFacts } from "./facts.js";

const image = "millrace-test/node:1";
let engine: TestDocker;
beforeAll(async () => {
  engine = await startDocker();
  engine.makeImage(image, { programs: [process.execPath, "/bin/sh", "/bin/sleep"] });
});
afterAll(() => engine.end());

const launchOf = ({ workerId, command, env, directory }: Wish): ImageSpec => ({
  workerId,
  from: { image },
  entrypoint: [],
  command,
  env,
  mounts: [{ volumeId: "unused", path: directory, target: directory }],
});

async function open(): Promise<OpenedProvider> {
  const logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
  const make = (more: DockerOptions = {}) =>
    new DockerProvider(openEngine({ host: engine.host, certificates: undefined }), "host0000000001", logsDir, more);
  let provider = make();
  return {
    provider,
    launch: launchOf,
    unstartable: [
      [
        /'no\/such:1' is not on this machine and could not be pulled: /,
        (wish) => ({ ...launchOf(wish), from: { image: "no/such:1" } }),
      ],
      [/names no command: set dockerStartCmd/, (wish) => ({ ...launchOf(wish), command: [] })],
    ],
    again: async (more) => (provider = make(more)),
    end: async () => {
      await provider.leave();
      const left = engine.docker("ps", "-aq").split("\n").filter(Boolean);
      if (left.length > 0) engine.docker("rm", "-f", ...left);
      rmSync(logsDir, { recursive: true });
    },
  };
}

describe("A container", () => {
  let opened: OpenedProvider;
  let directory: string;
  beforeEach(async () => {
    opened = await open();
    directory = mkdtempSync(join(tmpdir(), "millrace-stage-"));
  });
  afterEach(async () => {
    await opened.end();
    rmSync(directory, { recursive: true });
  });
  const workerId = "worker00000001";
  const name = `millrace-${workerId}`;
  const hostConfig = () => JSON.parse(engine.docker("inspect", name))[0].HostConfig;
  const sleeping = (secret: string): ImageSpec =>
    launchOf({ workerId, command: ["/bin/sleep", "600"], env: { SECRET: secret }, directory });

  it("that was created and never started is created again, with the present secret", async () => {
    const labels = ["--label", `millrace.worker=${workerId}`, "--label", "millrace.host=host0000000001"];
    engine.docker("create", "--name", name, ...labels, "--env", "SECRET=old", image, "/bin/sleep", "600");
    expect(await opened.provider.look(workerId)).toMatchObject({ state: "unknown" });
    await opened.provider.start(sleeping("new"));
    expect(engine.docker("inspect", "--format", "{{.Config.Env}} {{.State.Running}}", name)).toMatch(
      /SECRET=new.* true/,
    );
  });

  it("that was removed by someone else is reported when it is stopped or killed", async () => {
    const handle = await opened.provider.start(sleeping("a"));
    engine.docker("rm", "-f", name);
    for (const ask of [() => opened.provider.stop(workerId), () => opened.provider.kill(workerId, handle)]) {
      const end = endOf(opened.provider, workerId);
      await ask();
      await end;
    }
    expect(await opened.provider.look(workerId, handle)).toMatchObject({ state: "unknown" });
  });

  it("of a host is reported after each connection, and another host's is not", async () => {
    const others = new DockerProvider(
      openEngine({ host: engine.host, certificates: undefined }),
      "host0000000002",
      directory,
    );
    await others.start({ ...sleeping("b"), workerId: "worker00000002" });
    await opened.provider.start(sleeping("a"));
    const told: string[] = [];
    const again = await opened.again();
    const end = endOf(again, workerId);
    again.onEnd((id) => told.push(id));
    await again.look(workerId);
    await end;
    expect(told).toEqual([workerId]);
    await others.leave();
  });

  it("that runs is reported with its own address", async () => {
    const handle = await opened.provider.start(sleeping("a"));
    const address = engine.docker("inspect", "--format", "{{.NetworkSettings.IPAddress}}", name);
    expect(address).toMatch(/^198\.18\./);
    expect(handle).toEqual({
      provider: "docker",
      ref: { container: name },
      network: { reachedFrom: "host", address },
    });
    expect(await opened.provider.look(workerId)).toEqual({ state: "running", handle });
  });

  it("is not started once it is no longer wanted", async () => {
    const starting = { note: () => {}, reached: () => {}, signal: AbortSignal.abort() };
    await expect(opened.provider.start(sleeping("a"), starting)).rejects.toThrow(/not wanted/);
    expect(engine.docker("ps", "-aq")).toBe("");
  });

  it("has a limit on its memory, and is killed before other processes if memory runs out", async () => {
    await opened.provider.start(sleeping("a"));
    expect(hostConfig().Memory).toBeGreaterThan(2 ** 28);
    expect(hostConfig().Memory).toBeLessThan(totalmem());
    expect(hostConfig().OomScoreAdj).toBe(limits.containerOomScore);
  });

  it("gets the memory and processors that it was given, as far as the machine has them", async () => {
    await opened.provider.start({ ...sleeping("a"), memoryMib: 96, cpus: 0.5 });
    expect(hostConfig()).toMatchObject({ Memory: 96 * 2 ** 20, NanoCpus: 5e8 });
    engine.docker("rm", "-f", name);
    await opened.provider.start({ ...sleeping("a"), cpus: 4_096 });
    expect(hostConfig().NanoCpus).toBe(availableParallelism() * 1e9);
  });

  it("is requested with its GPUs, and fails with a clear reason if the engine has none", async () => {
    const refusal = await opened.provider.start({ ...sleeping("a"), gpus: ["GPU-1", "GPU-2"] }).catch((error) => error);
    expect(refusal).toMatchObject({ blame: "gpu" });
    expect(refusal.message).toMatch(/^no GPU could be given .*could not select device driver .*gpu/);
    expect(await opened.provider.look(workerId)).toMatchObject({ state: "unknown" });
    expect(engine.docker("ps", "-aq")).toBe("");
  });

  it("whose disk the engine cannot limit runs without a limit, which is reported once", async () => {
    const warnings: string[] = [];
    const own = new DockerProvider(openEngine({ host: engine.host, certificates: undefined }), "h", directory, {
      warn: (text) => warnings.push(text),
    });
    for (const id of ["worker00000002", "worker00000003"]) {
      await own.start({ ...sleeping("a"), workerId: id, diskGb: 1 });
    }
    expect(warnings).toEqual([expect.stringMatching(/containerDiskInGb is not enforced/)]);
    await own.leave();
  });

  it.each([
    [
      "that exceeds its own bound ran out of memory",
      { memoryMib: 32 },
      "a=x; while :; do a=$a$a; done",
      /ran out of memory/,
    ],
    ["that the system killed was short of the machine's memory", {}, "kill -9 $$", /137.*memory runs out/],
  ])("%s", async (_, more, script, note) => {
    const end = endOf(opened.provider, workerId);
    await opened.provider.start({ ...sleeping("a"), ...more, command: ["/bin/sh", "-c", script] });
    await end;
    expect(await opened.provider.look(workerId)).toMatchObject({
      state: "ended",
      exit: { cause: "memory", note: expect.stringMatching(note) },
    });
  });

  it("whose command is not in its image is blamed on the image", async () => {
    const end = endOf(opened.provider, workerId);
    await opened.provider.start({ ...sleeping("a"), command: ["no-such-command"] });
    await end;
    expect(await opened.provider.look(workerId)).toMatchObject({ state: "ended", exit: { cause: "image" } });
    expect(await opened.provider.logTail(workerId)).toMatch(/no-such-command/);
  });

  it("sees the engine's volume wherever it is mounted; the volume outlives it and is deleted on request", async () => {
    const keeping = openEngine({ host: engine.host, certificates: undefined }, { keepsVolumes: true });
    const facts = engineFacts(keeping);
    const logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
    const provider = new DockerProvider(keeping, "host0000000001", logsDir);
    const mounts = ["/runpod-volume", "/models"].map((target) => ({ target, volumeId: "volume00000001", path: "" }));
    const run = async (script: string) => {
      const end = endOf(provider, workerId);
      await provider.start({ ...sleeping("a"), command: ["/bin/sh", "-c", script], mounts });
      await end;
      const tail = await provider.logTail(workerId);
      await provider.forget(workerId);
      return tail;
    };
    await run("echo weights > /models/model");
    expect(await run("read line < /runpod-volume/model; echo $line")).toBe("weights");
    const labelled = () => engine.docker("volume", "ls", "-q", "--filter", "label=millrace.volume");
    expect(labelled()).toBe("millrace-volume00000001");
    await run(`${process.execPath} -e 'require("fs").writeFileSync("/models/zeros", Buffer.alloc(3e6))'`);
    const held = (await facts.volumes.measure()).get("volume00000001") ?? 0;
    expect(held).toBeGreaterThanOrEqual(3_000_000);
    expect(held).toBeLessThan(4_000_000);
    await facts.volumes.remove("volume00000001");
    expect(labelled()).toBe("");
    expect(await facts.volumes.measure()).toEqual(new Map());
    await facts.volumes.remove("volume00000001");
  });

  it("can be reached at its ports: at its own address, and on an address of this machine if they are published", async () => {
    const reached = { host: engine.host, certificates: undefined };
    const logsDir = mkdtempSync(join(tmpdir(), "millrace-logs-"));
    const publishing = new DockerProvider(openEngine(reached, { publishOn: "127.0.0.1" }), "host0000000001", logsDir);
    const serve = `require("http").createServer((_, reply) => reply.end("inside")).listen(8888)`;
    const launch = { ...sleeping("a"), command: [process.execPath, "-e", serve], ports: [8888, 22] };
    const handle = await publishing.start(launch);
    expect(Object.keys(handle.network?.published ?? {}).sort()).toEqual(["22", "8888"]);
    expect(handle.network?.publishedAt).toBe("127.0.0.1");
    const urls = [`http://127.0.0.1:${handle.network?.published?.[8888]}`, `http://${handle.network?.address}:8888`];
    for (const url of urls) {
      const answer = async () => (await fetch(url, { signal: AbortSignal.timeout(2_000) })).text();
      await vi.waitFor(async () => expect(await answer()).toBe("inside"), { timeout: 20_000, interval: 100 });
    }
    await publishing.kill(workerId);
    const plain = await opened.provider.start({ ...sleeping("b"), workerId: "worker00000002", ports: [8888] });
    expect(plain.network).not.toHaveProperty("published");
    await publishing.leave();
    rmSync(logsDir, { recursive: true });
  });

  it("has its image checked before anything runs, if it is present and the engine answers in time", async () => {
    const { imageComplaint } = engineFacts(openEngine({ host: engine.host, certificates: undefined }));
    expect(await imageComplaint(image, true)).toBeUndefined();
    expect(await imageComplaint(image, false)).toMatch(/names no command: set dockerStartCmd/);
    expect(await imageComplaint("no/such:1", false)).toBeUndefined();
    const away = engineFacts(openEngine({ host: "unix:///nowhere.sock", certificates: undefined }));
    expect(await away.imageComplaint(image, false)).toBeUndefined();
    const silent = createServer(() => {});
    const path = join(directory, "silent.sock");
    await new Promise<void>((done) => silent.listen(path, done));
    const hung = engineFacts(openEngine({ host: `unix://${path}`, certificates: undefined }));
    expect(await hung.imageComplaint(image, false)).toBeUndefined();
    silent.close();
  });

  it("of an engine that is away may or may not have started, and is reported as uncertain", async () => {
    const away = new DockerProvider(
      openEngine({ host: "unix:///nowhere.sock", certificates: undefined }),
      "host",
      directory,
    );
    await expect(away.start(sleeping("a"))).rejects.toThrow("no container engine answers at unix:///nowhere.sock");
    await expect(away.look(workerId)).rejects.toThrow();
  });
});

providerContract("Containers keep the provider's contract", open);
