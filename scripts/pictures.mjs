// `npm run pictures`: makes the pictures of docs/guide/pictures anew, from a server of its own with some jobs.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { build, main, root } from "./set-up.mjs";

const pictures = join(root, "docs/guide/pictures");
const size = { width: 1_200, height: 760 };
const handler = `
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default async function* describe(input, job) {
  job.log.info(\`describing \${input.image}\`);
  await rest(input.ms ?? 400);
  if (input.image === "broken.png") throw new Error("cannot read broken.png: not an image");
  for (const word of ["a mill", "by a river,", "in the morning"]) {
    yield \`\${word} \`;
    await rest(120);
  }
}
`;

await main(async () => {
  await build();
  const folder = mkdtempSync(join(tmpdir(), "millrace-pictures-"));
  const key = "mr_pictures-of-the-dashboard-00000000";
  const port = await freePort();
  const env = {
    ...process.env,
    MILLRACE_PORT: String(port),
    MILLRACE_DATA_DIR: join(folder, "data"),
    MILLRACE_API_KEY: key,
    MILLRACE_DEMO: "off",
  };
  const server = spawn(process.execPath, [join(root, "packages/server/dist/main.js")], { env, stdio: "ignore" });
  try {
    await take({ url: `http://127.0.0.1:${port}`, key, folder });
  } finally {
    server.kill("SIGTERM");
    await new Promise((resolve) => server.once("exit", resolve));
    rmSync(folder, { recursive: true, force: true });
  }
  return 0;
});

async function take({ url, key, folder }) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const call = async (method, path, body) => {
    const reply = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${method} ${path}: ${await reply.text()}`);
    return reply.json();
  };
  await ready(url);
  mkdirSync(join(folder, "describe"));
  writeFileSync(join(folder, "describe/handler.mjs"), handler);
  const template = await call("POST", "/v1/templates", {
    name: "image-to-text",
    imageName: join(folder, "describe"),
    isServerless: true,
  });
  const made = { templateId: template.id, computeType: "CPU" };
  const endpoint = await call("POST", "/v1/endpoints", {
    ...made,
    name: "image-to-text",
    workersMax: 3,
    scalerValue: 1,
  });
  const idle = await call("POST", "/v1/endpoints", { ...made, name: "embeddings", workersMax: 0 });
  await call("POST", "/v1/endpoints", { ...made, name: "speech" });
  const run = (image, ms) => call("POST", `/v2/${endpoint.id}/run`, { input: { image, ms } });
  const first = await run("river.png", 900);
  for (let n = 0; n < 10; n++) await run(`river-${n}.png`, 600 + 100 * n);
  await run("broken.png");
  await call("POST", `/v2/${idle.id}/run`, { input: { text: "a mill" } });
  await settled(call, endpoint.id);

  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium" });
  try {
    const page = await browser.newPage({ viewport: size, colorScheme: "dark" });
    await page.goto(`${url}/sign-in`);
    await page.fill("#key", key);
    await page.click("button[type=submit]");
    mkdirSync(pictures, { recursive: true });
    for (const [name, path] of [
      ["overview", "/"],
      ["job", `/endpoints/${endpoint.id}/jobs/${first.id}`],
      ["scaling", `/endpoints/${endpoint.id}/scaling`],
    ]) {
      await page.goto(url + path);
      await page.waitForLoadState("load");
      await page.waitForTimeout(1_500); // charts, and what comes by streams
      await page.screenshot({ path: join(pictures, `${name}.png`) });
    }
  } finally {
    await browser.close();
  }
}

async function ready(url) {
  for (;;) {
    const reply = await fetch(`${url}/readyz`).catch(() => undefined);
    if (reply?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Waits until nothing waits or runs. */
async function settled(call, id) {
  for (;;) {
    const { jobs } = await call("GET", `/v2/${id}/health`);
    if (jobs.inQueue + jobs.inProgress === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
