import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf } from "../docs/guide/blocks.js";
import { type Ending, makeFolder } from "../e2e/handlers.js";
import { call, freePort, makeEndpoint, root, startServer, type TestServer, until } from "../harness.js";

/** The file of that name on a page of the guide. */
function fileOn(page: string, file: string): string {
  const block = blocksOf(page).find(({ words }) => words.file === file);
  if (!block) throw new Error(`${page}.md has no ${file}`);
  return block.text;
}

let server: TestServer;
let endpoint: string;
beforeAll(async () => {
  server = await startServer({ MILLRACE_TRUST_PROXY: "on" });
  endpoint = await makeEndpoint(server, "./examples/hello");
});
afterAll(() => server?.end());

function makeCertificate(folder: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const subject = ["-subj", "/CN=millrace.example.com", "-addext", "subjectAltName=DNS:millrace.example.com"];
  const args = [
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-keyout",
    key,
    "-out",
    cert,
    ...subject,
  ];
  execFileSync("openssl", args, { stdio: "ignore" });
  return { cert, key };
}

/** Starts a proxy, and ends it with the test. */
function start(test: Ending, program: string, args: string[], home: string): () => string {
  const PATH = `${process.env.PATH}:/usr/sbin`;
  const child = spawn(program, args, { env: { PATH, HOME: home }, stdio: ["ignore", "pipe", "pipe"] });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (log += text));
  const ended = new Promise((done) => child.once("exit", done));
  test.onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  return () => log;
}

interface Reply {
  readonly status: number;
  readonly text: string;
}

/** A request over TLS to a proxy on loopback, by the name of the page. */
function ask(port: number, path: string, body?: string): Promise<Reply> {
  return new Promise((done, fail) => {
    const options = {
      ...{ host: "127.0.0.1", port, path, method: body === undefined ? "GET" : "POST" },
      ...{ servername: "millrace.example.com", agent: new Agent({ rejectUnauthorized: false }) },
      headers: { host: "millrace.example.com", authorization: `Bearer ${server.key}` },
    };
    const sent = request(options, (reply) => {
      let text = "";
      reply.setEncoding("utf8").on("data", (part) => (text += part));
      reply.once("end", () => done({ status: reply.statusCode ?? 0, text }));
    });
    sent.once("error", fail).end(body);
  });
}

/** What the page promises of a proxy: jobs pass, events stream, metrics are hidden. */
async function passes(port: number): Promise<void> {
  await until(() =>
    ask(port, "/healthz").then(
      ({ status }) => status === 200,
      () => false,
    ),
  );
  const job = await ask(port, `/v2/${endpoint}/runsync`, '{"input":{"name":"Ada"}}');
  expect(JSON.parse(job.text)).toMatchObject({ status: "COMPLETED", output: { greeting: "Hello, Ada!" } });
  expect((await ask(port, "/metrics")).status).toBe(404);
  expect((await ask(port, "/docs/guide/")).text).toContain("Millrace");
  const { body } = await call(server, "GET", `/v1/endpoints/${endpoint}`);
  expect(body.id).toBe(endpoint);
}

// docs/guide/proxy.md
describe("The proxies of the page on TLS", () => {
  it("Caddy passes jobs on and hides the metrics", async (test) => {
    const folder = makeFolder(test);
    const port = await freePort();
    const { cert, key } = makeCertificate(folder);
    const given = fileOn("proxy", "Caddyfile");
    const path = join(folder, "Caddyfile");
    const own = given
      .replace("millrace.example.com {", `https://millrace.example.com:${port} {\n\ttls ${cert} ${key}`)
      .replace("127.0.0.1:8000", `127.0.0.1:${server.port}`);
    writeFileSync(path, `{\n\tadmin off\n\tauto_https off\n}\n${own}\n`);
    writeFileSync(join(folder, "as-given"), `${given}\n`);
    const check = ["validate", "--adapter", "caddyfile", "--config", join(folder, "as-given")];
    execFileSync("caddy", check, { env: { PATH: process.env.PATH, HOME: folder }, stdio: "ignore" });
    start(test, "caddy", ["run", "--adapter", "caddyfile", "--config", path], folder);
    await passes(port);
  });

  it("nginx passes jobs on and hides the metrics", async (test) => {
    const folder = makeFolder(test);
    const port = await freePort();
    const { cert, key } = makeCertificate(folder);
    const site = fileOn("proxy", "millrace.conf")
      .replace("127.0.0.1:8000", `127.0.0.1:${server.port}`)
      .replace("listen 443 ssl", `listen 127.0.0.1:${port} ssl`)
      .replace("/etc/ssl/millrace.pem", cert)
      .replace("/etc/ssl/millrace.key", key);
    for (const name of ["body", "proxy", "fastcgi", "uwsgi", "scgi"]) mkdirSync(join(folder, name));
    const paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
      .map((name) => `${name}_temp_path ${join(folder, name.replace("client_", ""))};`)
      .join("\n");
    const main = `pid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${paths}\n${site}\n}\n`;
    const path = join(folder, "nginx.conf");
    writeFileSync(path, main);
    start(test, "nginx", ["-p", folder, "-c", path, "-g", "daemon off;"], folder);
    await passes(port);
  });
});

it("systemd accepts the unit of docs/guide/deployment.md", (test) => {
  const folder = makeFolder(test);
  const unit = fileOn("deployment", "millrace.service")
    .replaceAll("/opt/millrace", root)
    .replace("User=millrace", "User=nobody");
  const path = join(folder, "millrace.service");
  writeFileSync(path, `${unit}\n`);
  const output = execFileSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8", stdio: "pipe" });
  expect(output).toBe("");
});
