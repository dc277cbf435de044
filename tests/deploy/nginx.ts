import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, root, until } from "../harness.js";

/** A proxy for tests, with exactly the configuration of deploy/. */
export interface FrontProxy {
  readonly url: string;
  log(): string;
  end(): Promise<void>;
}

const program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].find(existsSync) ?? "nginx";

/** Starts nginx with deploy/nginx.conf; only addresses and folders are adapted to this machine. */
export async function startProxy(serverPorts: readonly number[]): Promise<FrontProxy> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-proxy-"));
  chmodSync(folder, 0o755); // if root starts it, its workers run as another user
  const port = await freePort();
  const given = readFileSync(join(root, "deploy/nginx.conf"), "utf8");
  const own = given
    .replaceAll("/tmp/", `${folder}/`)
    .replace("server-1:8000", `127.0.0.1:${serverPorts[0]}`)
    .replace("server-2:8000", `127.0.0.1:${serverPorts[1]}`)
    .replace("listen 8080;", `listen 127.0.0.1:${port};`)
    .replace("access_log /dev/stdout", `access_log ${folder}/access.log`);
  writeFileSync(join(folder, "nginx.conf"), own);
  const args = ["-p", folder, "-c", join(folder, "nginx.conf"), "-g", "daemon off;"];
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  child.stdout.on("data", (text) => (log += text));
  child.stderr.on("data", (text) => (log += text));
  const exited = new Promise<void>((done) => {
    child.once("exit", () => done());
    child.once("error", (error) => {
      log += error.message;
      done();
    });
  });
  const end = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
      const reply = await fetch(`${url}/healthz`).catch(() => undefined);
      await reply?.arrayBuffer();
      return reply?.status === 200;
    });
  } catch (error) {
    await end();
    throw new Error(`${error instanceof Error ? error.message : error}: ${log}`);
  }
  return { url, log: () => log, end };
}
