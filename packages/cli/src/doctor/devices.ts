import { existsSync, readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import type { Env } from "../contexts.js";
import { runProgram } from "../run-program.js";
import type { Finding } from "./finding.js";

const timeoutMs = 15_000; // a sleeping driver takes seconds to wake
const engineMs = 3_000;
const dockerd = "/usr/bin/dockerd";
const start = "sudo systemctl start docker";

/** The Docker engine, the GPUs, and whether containers can be given them. `devices`: where the kernel lists what is plugged in. */
export async function containersAndGpus(
  env: Env,
  folder: string,
  devices = "/sys/bus/pci/devices",
): Promise<Finding[]> {
  const [engine, cards] = [await docker(env, folder), await gpus(env, folder, devices)];
  if (engine.is !== "fine" || cards.is !== "fine" || cards.words === noGpu) return [engine, cards];
  const toolkit = await runProgram("nvidia-ctk", ["--version"], { env, cwd: folder, timeoutMs });
  if (toolkit.code === 0) return [engine, cards];
  const mend =
    "sudo apt install nvidia-container-toolkit && sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker";
  const words = "containers cannot be given GPUs: nvidia-container-toolkit is not installed (docs/guide/gpus.md)";
  return [engine, cards, { what: "toolkit", is: "missing", words, mend }];
}

const noGpu = "none by NVIDIA in this machine; handlers run without";

async function docker(env: Env, folder: string): Promise<Finding> {
  const what = "Docker";
  const host = env.DOCKER_HOST ?? "unix:///var/run/docker.sock";
  const socket = /^unix:\/\/(.+)$/.exec(host)?.[1];
  const found = socket === undefined ? await dockerCli(env, folder) : await engineAt(socket);
  if ("version" in found) return { what, is: "fine", words: `engine ${found.version}` };
  const why = { denied: "may not be used by this user", off: "is not running", none: "does not answer" }[found.no];
  const mend = {
    denied: "sudo usermod -aG docker $USER && newgrp docker",
    off: start,
    none:
      socket === undefined
        ? `docker --host ${host} version`
        : existsSync(dockerd)
          ? start
          : "sudo apt install docker.io",
  }[found.no];
  return { what, is: "missing", words: `the engine at ${host} ${why}: images as workers, and pods, need one`, mend };
}

/** An engine's version, or why there is none. */
type Engine = { readonly version: string } | { readonly no: "denied" | "off" | "none" };

async function dockerCli(env: Env, folder: string): Promise<Engine> {
  const words = ["version", "--format", "{{.Server.Version}}"];
  const { code, output } = await runProgram("docker", words, { env, cwd: folder, timeoutMs });
  return code === 0 ? { version: output } : { no: "none" };
}

/** Asks the engine itself: its command line may be missing where the engine is not. */
function engineAt(socketPath: string): Promise<Engine> {
  return new Promise((done) => {
    const asked = request({ socketPath, path: "/version", timeout: engineMs }, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part) => (text += part));
      reply.on("end", () => {
        const version = /"Version":"([^"]+)"/.exec(text)?.[1];
        done(version === undefined ? { no: "none" } : { version });
      });
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", ({ code }: NodeJS.ErrnoException) => {
      const no = code === "EACCES" ? "denied" : code === "ENOENT" || !existsSync(socketPath) ? "none" : "off";
      done({ no });
    });
    asked.end();
  });
}

async function gpus(env: Env, folder: string, devices: string): Promise<Finding> {
  const what = "GPUs";
  const query = ["--query-gpu=name,driver_version", "--format=csv,noheader"];
  const { code, output } = await runProgram("nvidia-smi", query, { env, cwd: folder, timeoutMs });
  const [first = ""] = output.split("\n");
  if (code === 0 && first !== "") return { what, is: "fine", words: output.split("\n").join("; ") };
  if (code !== null)
    return {
      what,
      is: "missing",
      words: `nvidia-smi fails: ${first}`,
      mend: "sudo dmesg | grep -iE 'nvidia|nvrm|xid'",
    };
  if (!hasNvidia(devices)) return { what, is: "fine", words: noGpu };
  const words = "an NVIDIA GPU is here, but no driver";
  const install = existsSync("/usr/bin/ubuntu-drivers")
    ? "ubuntu-drivers install --gpgpu"
    : "apt install nvidia-driver";
  return { what, is: "missing", words, mend: `sudo ${install} && sudo reboot` };
}

/** Whether a display or compute device by NVIDIA is plugged in. */
function hasNvidia(devices: string): boolean {
  const has = (device: string, file: string, pattern: RegExp) => {
    const path = join(devices, device, file);
    return existsSync(path) && pattern.test(readFileSync(path, "utf8"));
  };
  if (!existsSync(devices)) return false;
  return readdirSync(devices).some((each) => has(each, "vendor", /^0x10de/) && has(each, "class", /^0x03/));
}
