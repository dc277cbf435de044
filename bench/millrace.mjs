// A server of ours in a process and a data directory of its own, as its users start it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "../scripts/set-up.mjs";

const key = "mr_bench_0123456789abcdef0123456789abcdef";
const readyMaxMs = 20_000;

/** Starts the server; rate limits are off, everything else is as it comes. */
export async function startMillrace({ nodeArgs = [] } = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const child = spawn(process.execPath, [...nodeArgs, join(root, "packages/server/dist/main.js")], {
    cwd: root,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      MILLRACE_DATA_DIR: dataDir,
      MILLRACE_PORT: String(port),
      MILLRACE_API_KEY: key,
      MILLRACE_RATE_LIMITS: "off",
      MILLRACE_DEMO: "off",
      MILLRACE_LOG_LEVEL: "error",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = once(child, "exit");
  const server = {
    url,
    key,
    dataDir,
    pid: child.pid,
    call: (method, path, body) => callJson(url + path, method, body),
    async end() {
      child.kill("SIGTERM");
      await ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  await isReady(child, url);
  return server;
}

/** Makes a template over a folder and an endpoint on it; resolves with the endpoint's id. */
export async function makeEndpoint(server, folder, settings) {
  const name = `bench-${Math.random().toString(36).slice(2)}`;
  const template = await server.call("POST", "/v1/templates", { name, imageName: folder, isServerless: true });
  const endpoint = await server.call("POST", "/v1/endpoints", { name, templateId: template.id, ...settings });
  return endpoint.id;
}

async function callJson(url, method, body) {
  const reply = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  if (!reply.ok) throw new Error(`${method} ${url} was answered ${reply.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

async function isReady(child, url) {
  const deadline = Date.now() + readyMaxMs;
  for (;;) {
    const reply = await fetch(`${url}/readyz`).catch(() => undefined);
    await reply?.arrayBuffer();
    if (reply?.status === 200) return;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error("The server did not become ready.");
    await sleep(25);
  }
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}
