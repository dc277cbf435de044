import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DirectorySpec, type Provider, StartUnsure } from "../../provider.js";
import { endOf } from "../contracts/scene.js";
import { type Puppet, Stage } from "../puppet-fixture.js";
import { keeperGone, newHost, providerOf, specOf } from "./local-host-fixture.js";
import { statOf } from "./process-table.js";

describe("The keeper of local processes", () => {
  const id = "worker00000001";
  let dataDir: string;
  let stage: Stage;
  let provider: Provider<DirectorySpec>;
  beforeEach(async () => {
    dataDir = newHost();
    stage = new Stage();
    await stage.open();
    provider = providerOf(dataDir);
  });
  afterEach(async () => {
    await stage.close();
    if (existsSync(join(dataDir, "keeper.sock"))) {
      await provider.leave(0).catch(() => "it was about to end by itself");
      await keeperGone(dataDir);
    }
    rmSync(dataDir, { recursive: true, force: true });
  });
  const launchOf = (workerId: string, command = stage.command(workerId)): DirectorySpec => {
    const env = { PATH: process.env.PATH ?? "", RUNPOD_POD_ID: workerId };
    return specOf({ workerId, directory: stage.directory, command, env });
  };
  const start = async (workerId = id, command?: string[]) => {
    const handle = await provider.start(launchOf(workerId, command));
    return { handle, puppet: await stage.meet(workerId) };
  };
  /** A child of the worker in a separate session. */
  const strayOf = (puppet: Puppet): Promise<Puppet> => {
    puppet.do("stray", "stray");
    return stage.meet("stray");
  };
  /** Leaves as a server does; the next server has not called yet. */
  const leave = async (awayMs: number) => {
    await provider.leave(awayMs);
    provider = providerOf(dataDir);
  };
  const ended = async (puppet: Puppet) => {
    const end = endOf(provider, id);
    puppet.do("exit", 0);
    await end;
  };

  it("ends with its last worker if there is no server", async () => {
    const { puppet } = await start();
    await leave(60_000);
    expect(existsSync(join(dataDir, "keeper.sock"))).toBe(true);
    const gone = keeperGone(dataDir);
    puppet.do("exit", 0);
    await gone;
  });

  it("ends at once when its server leaves without workers", async () => {
    const { puppet } = await start();
    await ended(puppet);
    const gone = keeperGone(dataDir);
    await leave(60_000);
    await gone;
  });

  it("stops remaining workers if they may not live on", async () => {
    const { puppet } = await start();
    const gone = keeperGone(dataDir);
    await leave(0);
    await Promise.all([puppet.ended, gone]);
  });

  it("stops paused workers too", async () => {
    const { puppet } = await start();
    await provider.pause(id);
    const gone = keeperGone(dataDir);
    await leave(0);
    await Promise.all([puppet.ended, gone]);
  });

  it("stops its workers and ends when the data directory is gone", async () => {
    const { puppet } = await start();
    await leave(60_000);
    rmSync(dataDir, { recursive: true, force: true });
    await puppet.ended;
  });

  it("is a separate process, with its workers as children, each in its own process group", async () => {
    const { puppet, handle } = await start();
    expect(puppet.ppid).not.toBe(process.pid);
    expect(statOf(puppet.pid)).toEqual({ group: puppet.pid, startTime: handle.ref.startTime });
  });

  it("lets no child outlive its leader, not even in a separate session", async () => {
    const { puppet } = await start();
    const stray = await strayOf(puppet);
    await ended(puppet);
    await stray.ended;
  });

  it("kills a worker with children in separate sessions, and no other worker's children", async () => {
    const { puppet, handle } = await start();
    const stray = await strayOf(puppet);
    const { puppet: other } = await start("worker00000002");
    const otherStray = await strayOf(other);
    const end = endOf(provider, id);
    await provider.kill(id, handle);
    await Promise.all([puppet.ended, stray.ended, end]);
    expect(await otherStray.ask("hello")).toBe("hello");
  });

  it("that replaces a killed keeper ends everything that the killed one left", async () => {
    const { puppet } = await start();
    const stray = await strayOf(puppet);
    const { puppet: other } = await start("worker00000002");
    const lost = endOf(provider, id);
    process.kill(puppet.ppid, "SIGKILL");
    await lost;
    expect(await provider.look(id)).toMatchObject({ state: "unknown" });
    await Promise.all([puppet.ended, stray.ended, other.ended]);
  });

  it("that dies after a start that no server has heard of leaves nothing of it to the next server", async () => {
    const { puppet } = await start();
    process.kill(puppet.ppid, "SIGSTOP");
    const unheard = provider.start(launchOf("worker00000002")).catch(() => "its server has gone");
    process.kill(puppet.ppid, "SIGCONT");
    const unsure = await stage.meet("worker00000002");
    process.kill(puppet.ppid, "SIGKILL");
    provider = providerOf(dataDir);
    expect(await provider.look("worker00000002")).toMatchObject({ state: "unknown" });
    await Promise.all([puppet.ended, unsure.ended, unheard]);
    const { puppet: next } = await start("worker00000003");
    expect(await next.ask("hello")).toBe("hello");
  });

  it("ends an unknown worker by its mark in the environment, and does not start it afterwards", async () => {
    const { puppet: known } = await start("worker00000002");
    const { env } = (await known.ask("where")) as { env: Record<string, string> };
    const unknown = await stage.stranger("unknown", { ...env, RUNPOD_POD_ID: id });
    await provider.kill(id, undefined);
    await unknown.ended;
    await expect(provider.start(launchOf(id))).rejects.toThrow("it was ended before it was started");
    expect(await known.ask("hello")).toBe("hello");
  });

  it("kills a known worker without being given its handle, even if it cleared its environment", async () => {
    const { puppet } = await start(id, ["env", "-i", ...stage.command(id)]);
    puppet.do("child", "child");
    const child = await stage.meet("child");
    await provider.kill(id, undefined);
    await Promise.all([puppet.ended, child.ended]);
  });

  it("leaves a start that it did not answer uncertain", async () => {
    const { puppet } = await start();
    process.kill(puppet.ppid, "SIGSTOP");
    const starting = provider.start(launchOf("worker00000002"));
    process.kill(puppet.ppid, "SIGKILL");
    await expect(starting).rejects.toBeInstanceOf(StartUnsure);
  });

  it("reports its workers lost when it is killed itself; they are still found and killed by their handles", async () => {
    const { puppet, handle } = await start(id, ["env", "-i", ...stage.command(id)]); // its environment has no mark
    puppet.do("child", "child");
    const child = await stage.meet("child");
    const lost = endOf(provider, id);
    process.kill(puppet.ppid, "SIGKILL");
    await lost;
    expect(await provider.look(id)).toMatchObject({ state: "unknown" });
    expect(await puppet.ask("hello")).toBe("hello");
    await provider.kill(id, handle);
    await Promise.all([puppet.ended, child.ended]);
  });

  it("reports adopted workers lost too when it is killed", async () => {
    const { puppet } = await start();
    await leave(60_000);
    await provider.look(id);
    const lost = endOf(provider, id);
    process.kill(puppet.ppid, "SIGKILL");
    await lost;
    puppet.do("exit", 0);
    await puppet.ended;
  });

  it("writes a worker's output to a file that only its owner can read, with repeated lines counted", async () => {
    const { puppet } = await start();
    await puppet.ask("say", `${"again\n".repeat(1_000)}then\n`);
    await ended(puppet);
    const file = join(dataDir, "logs", `${id}.log`);
    const form = /^\d{16} 1 again\n\d{16} 1 \[the line before came 999 more times\]\n\d{16} 1 then\n$/;
    expect(readFileSync(file, "utf8")).toMatch(form);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("works from a directory whose path is too long for a socket", async () => {
    const deep = join(dataDir, "d".repeat(100));
    const far = providerOf(deep);
    const env = { PATH: process.env.PATH ?? "" };
    await far.start(specOf({ workerId: "far", directory: stage.directory, command: stage.command("far"), env }));
    const puppet = await stage.meet("far");
    await far.leave(0);
    await puppet.ended;
  });
});
