import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startDocker, type TestDocker } from "../../../../../scripts/docker.mjs";
import { limits } from "../../limits.js";
import type { ContainerLaunch } from "../../provider.js";
import { endOf, type OpenedProvider, providerContract, type Wish } from "../contract.js";
import { dockerProvider } from "./docker-provider.js";
import { openEngine } from "./engine.js";

const image = "millrace-test/node:1";
let engine: TestDocker;
beforeAll(async () => {
  engine = await startDocker();
  engine.makeImage(image, { programs: [process.execPath, "/bin/sh", "/bin/sleep"] });
});
afterAll(() => engine.end());

const launchOf = ({ workerId, command, env, directory }: Wish): ContainerLaunch => ({
  workerId,
  image,
  entrypoint: [],
  command,
  env,
  mounts: [{ source: directory, target: directory }],
});

async function open(): Promise<OpenedProvider> {
  const make = () => dockerProvider(openEngine({ host: engine.host, certificates: undefined }), "host0000000001");
  let provider = make();
  return {
    provider,
    launch: launchOf,
    unstartable: [
      [
        /'no\/such:1' is not on this machine and could not be pulled: /,
        (wish) => ({ ...launchOf(wish), image: "no/such:1" }),
      ],
      [/names no command: set dockerStartCmd/, (wish) => ({ ...launchOf(wish), command: [] })],
    ],
    again: async () => (provider = make()),
    end: async () => {
      await provider.leave(0);
      const left = engine.docker("ps", "-aq").split("\n").filter(Boolean);
      if (left.length > 0) engine.docker("rm", "-f", ...left);
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
  const sleeping = (secret: string): ContainerLaunch =>
    launchOf({ workerId, command: ["/bin/sleep", "600"], env: { SECRET: secret }, directory });

  it("that was made and never started is made anew, with the secret of now", async () => {
    const labels = ["--label", `millrace.worker=${workerId}`, "--label", "millrace.host=host0000000001"];
    engine.docker("create", "--name", name, ...labels, "--env", "SECRET=old", image, "/bin/sleep", "600");
    expect(await opened.provider.look(workerId)).toEqual({ state: "unknown" });
    await opened.provider.start(sleeping("new"));
    expect(engine.docker("inspect", "--format", "{{.Config.Env}} {{.State.Running}}", name)).toMatch(
      /SECRET=new.* true/,
    );
  });

  it("that was removed behind our back is told of by whoever asks it to stop, or kills it", async () => {
    const handle = await opened.provider.start(sleeping("a"));
    engine.docker("rm", "-f", name);
    for (const ask of [() => opened.provider.stop(workerId), () => opened.provider.kill(workerId, handle)]) {
      const end = endOf(opened.provider, workerId);
      await ask();
      await end;
    }
    expect(await opened.provider.look(workerId, handle)).toEqual({ state: "unknown" });
  });

  it("of a host is told of after each connection, and another host's is not", async () => {
    const others = dockerProvider(openEngine({ host: engine.host, certificates: undefined }), "host0000000002");
    await others.start({ ...sleeping("b"), workerId: "worker00000002" });
    await opened.provider.start(sleeping("a"));
    const told: string[] = [];
    const again = await opened.again();
    const end = endOf(again, workerId);
    again.onEnd((id) => told.push(id));
    await again.look(workerId);
    await end;
    expect(told).toEqual([workerId]);
    await others.leave(0);
  });

  it("is not begun once it is not wanted any more", async () => {
    const starting = { note: () => {}, signal: AbortSignal.abort() };
    await expect(opened.provider.start(sleeping("a"), starting)).rejects.toThrow(/not wanted/);
    expect(engine.docker("ps", "-aq")).toBe("");
  });

  it("has a bound on its memory, and goes before others where that runs out", async () => {
    await opened.provider.start(sleeping("a"));
    const [{ HostConfig }] = JSON.parse(engine.docker("inspect", name));
    expect(HostConfig.Memory).toBeGreaterThan(2 ** 28);
    expect(HostConfig.Memory).toBeLessThan(totalmem());
    expect(HostConfig.OomScoreAdj).toBe(limits.containerOomScore);
  });

  it("of an engine that is away may have been started or not: that is not known, and said so", async () => {
    const away = dockerProvider(openEngine({ host: "unix:///nowhere.sock", certificates: undefined }), "host");
    await expect(away.start(sleeping("a"))).rejects.toThrow("no container engine answers at unix:///nowhere.sock");
    await expect(away.look(workerId, { container: name })).rejects.toThrow();
  });
});

providerContract("Containers keep the provider's contract", open);
