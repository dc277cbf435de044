import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { containersAndGpus } from "./devices.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-devices-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program of the machine that is looked at. */
function program(name: string, script: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(folder, name), 0o755);
}

function card(name: string, vendor: string, kind: string): void {
  mkdirSync(join(folder, "devices", name), { recursive: true });
  writeFileSync(join(folder, "devices", name, "vendor"), `${vendor}\n`);
  writeFileSync(join(folder, "devices", name, "class"), `${kind}\n`);
}

async function found(env: Record<string, string> = {}) {
  const machine = { PATH: `${folder}:/bin`, DOCKER_HOST: `unix://${folder}/docker.sock`, ...env };
  const findings = await containersAndGpus(machine, folder, join(folder, "devices"));
  return Object.fromEntries(findings.map(({ what, ...rest }) => [what, rest]));
}

/** A Docker engine that says its version. */
async function engine(): Promise<{ close: () => void }> {
  const server = createServer((_, reply) => reply.end('{"Version":"28.1"}'));
  await new Promise<void>((done) => server.listen(join(folder, "docker.sock"), done));
  return { close: () => server.close() };
}

describe("What millrace doctor says of GPUs", () => {
  it("is nothing to mend where none is plugged in, such as with the network card of another maker", async () => {
    card("0000:00:01.0", "0x8086", "0x030000");
    card("0000:00:02.0", "0x10de", "0x020000");
    expect((await found()).GPUs).toEqual({ is: "fine", words: "none by NVIDIA in this machine; handlers run without" });
  });

  it("is how to install the driver where there is a card without one", async () => {
    card("0000:00:01.0", "0x10de", "0x030200");
    expect((await found()).GPUs).toMatchObject({
      is: "missing",
      words: "an NVIDIA GPU is here, but no driver",
      mend: expect.stringMatching(/^sudo .*(nvidia-driver|ubuntu-drivers).* && sudo reboot$/),
    });
  });

  it("is what nvidia-smi says, and where the kernel says more", async () => {
    program("nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18");
    const words = "nvidia-smi fails: Failed to initialize NVML: Driver/library version mismatch";
    expect((await found()).GPUs).toMatchObject({ is: "missing", words, mend: expect.stringContaining("dmesg") });
  });
});

describe("What millrace doctor says of GPUs in containers", () => {
  beforeEach(() => program("nvidia-smi", "echo 'NVIDIA L4, 570.1'"));

  it("is nothing without an engine, and how to install the toolkit with one", async (test) => {
    expect(await found()).toEqual({ Docker: expect.anything(), GPUs: { is: "fine", words: "NVIDIA L4, 570.1" } });
    const { close } = await engine();
    test.onTestFinished(close);
    const { Docker, toolkit } = await found();
    expect(Docker).toEqual({ is: "fine", words: "engine 28.1" });
    expect(toolkit).toMatchObject({ is: "missing", mend: expect.stringMatching(/^sudo apt install nvidia-container/) });
    program("nvidia-ctk", "echo 1.17");
    expect(Object.keys(await found())).toEqual(["Docker", "GPUs"]);
  });
});

describe("What millrace doctor says of the Docker engine", () => {
  it("is how to install it, or how to start it if only its socket is left", async () => {
    expect((await found()).Docker).toMatchObject({ is: "missing", mend: "sudo apt install docker.io" });
    writeFileSync(join(folder, "docker.sock"), "");
    expect((await found()).Docker).toMatchObject({
      words: expect.stringContaining("is not running"),
      mend: "sudo systemctl start docker",
    });
  });

  it("is how to ask one elsewhere that does not answer", async () => {
    const host = "tcp://127.0.0.1:1";
    expect((await found({ DOCKER_HOST: host })).Docker).toMatchObject({ mend: `docker --host ${host} version` });
  });
});
