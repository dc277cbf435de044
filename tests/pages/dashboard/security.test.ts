import { connect } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { until } from "../../harness.js";
import { sees, signIn, useDashboard } from "./visit.js";

const dashboard = useDashboard({ MILLRACE_RATE_LIMITS: "off" });
/** Markup that sets `hurt` if a page takes it for its own. */
const hostile = `<img src=x onerror="window.hurt=1"><script>window.hurt=1</script>`;
const handler = `
export default async function* ({ fail, text }) {
  console.log("said " + text);
  yield text;
  if (fail) throw new Error(text);
}
`;
const plainHandler = `
export default ({ text }, job) => {
  job.log.info("said " + text);
  return { [text]: text };
};
`;

let files: readonly string[];
beforeAll(async () => {
  const html = await (await fetch(`${dashboard.server.url}/`)).text();
  files = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path as string);
});

/** The status of a path that is sent as it stands: fetch would resolve its dots. */
function statusOf(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = connect(dashboard.server.port, "127.0.0.1");
    socket.once("data", (data) => {
      resolve(Number(String(data).split(" ")[1]));
      socket.destroy();
    });
    socket.once("error", reject);
    socket.write(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`);
  });
}

async function makeEndpoint(name: string, source: string): Promise<string> {
  const imageName = dashboard.handler(source);
  const template = await dashboard.api("POST", "/v1/templates", { name, imageName, isServerless: true });
  return (await dashboard.api("POST", "/v1/endpoints", { name, templateId: template.id })).id;
}

/** Runs a job to its end; the path of its page. */
async function run(endpoint: string, input: object): Promise<string> {
  const { id } = await dashboard.api("POST", `/v2/${endpoint}/run`, { input });
  const isOver = async () =>
    ["COMPLETED", "FAILED"].includes((await dashboard.api("GET", `/v2/${endpoint}/status/${id}`)).status);
  await until(isOver, 60_000);
  return `/endpoints/${endpoint}/jobs/${id}`;
}

describe("What the server sends", () => {
  it.each(["/", "/sign-in", "/endpoints/any/logs", "/keys"])(
    "lets %s load and run only its own files",
    async (path) => {
      const { status, headers } = await fetch(dashboard.server.url + path);
      const policy = headers.get("content-security-policy") ?? "";
      expect(status).toBe(200);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|\*|https?:/);
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    },
  );

  it.each(["br", "gzip"])("is compressed with %s, and its files stay in the browser's cache", async (encoding) => {
    expect(files.length).toBeGreaterThan(1);
    for (const path of files) {
      const { status, headers } = await fetch(dashboard.server.url + path, {
        headers: { "accept-encoding": encoding },
      });
      expect([path, status]).toEqual([path, 200]);
      expect(headers.get("cache-control")).toMatch(/max-age=31536000.*immutable/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      if (Number(headers.get("content-length")) > 1_024) expect(headers.get("content-encoding")).toBe(encoding);
    }
    const { headers } = await fetch(`${dashboard.server.url}/`, { headers: { "accept-encoding": encoding } });
    expect(headers.get("content-encoding")).toBe(encoding);
    expect(headers.get("cache-control")).toMatch(/no-cache|max-age=0/);
  });

  it("is less than 200 KB of script for the first page", async () => {
    const sizes: Promise<number>[] = [];
    const page = await dashboard.visit("/", {
      before: async (opened) => {
        opened.on("response", (reply) => {
          const isScript = new URL(reply.url()).pathname.endsWith(".js");
          if (isScript)
            sizes.push(
              reply
                .request()
                .sizes()
                .then(({ responseBodySize }) => responseBodySize),
            );
        });
      },
    });
    await sees(page, "No endpoint yet");
    const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(200_000);
  });

  it.each([
    "/assets/../index.html",
    "/assets/../../../package.json",
    "/assets/..%2f..%2f..%2fpackage.json",
    "/assets/%2e%2e/%2e%2e/%2e%2e/package.json",
    "/assets/..%5c..%5cpackage.json",
    "/assets/%2fetc%2fpasswd",
    "/assets/",
  ])("is no file outside the app's own: %s", async (path) => {
    expect(await statusOf(path)).toBeOneOf([400, 404]);
  });
});

describe("Text that a job returns", () => {
  it("is shown as text in its output and log", async () => {
    const path = await run(await makeEndpoint("plain", plainHandler), { text: hostile });
    const page = await dashboard.visit(path);
    await sees(page, `said ${hostile}`);
    await page.locator(".json").getByText(`${hostile}: `).waitFor();
    expect(await page.evaluate("window.hurt")).toBeUndefined();
  });

  it("is shown as text in its stream and error, and in the list of requests", async () => {
    const endpoint = await makeEndpoint("failing", handler);
    const page = await dashboard.visit(await run(endpoint, { text: hostile, fail: true }));
    await page.locator(".stream", { hasText: hostile }).waitFor();
    await page.locator(".trouble", { hasText: `Error: ${hostile}` }).waitFor();
    await page.goto(`${dashboard.server.url}/endpoints/${endpoint}`);
    await page.getByRole("cell", { name: `Error: ${hostile}` }).waitFor();
    await page.goto(`${dashboard.server.url}/endpoints/${endpoint}/logs`);
    await sees(page, `said ${hostile}`);
    expect(await page.evaluate("window.hurt")).toBeUndefined();
  });

  it("is shown as text in the name of an endpoint", async () => {
    const endpoint = await makeEndpoint("<b onclick=x>bold</b>", handler);
    const page = await dashboard.visit(`/endpoints/${endpoint}`);
    await page.getByRole("heading", { name: "<b onclick=x>bold</b>" }).waitFor();
  });
});

describe("A member of the team", () => {
  it("does not see the endpoints of the administrator", async () => {
    const endpoint = await makeEndpoint("of-the-admin", handler);
    const user = await dashboard.api("POST", "/v1/users", { name: "member", role: "member" });
    const { key } = await dashboard.api("POST", "/v1/apikeys", { name: "theirs", userId: user.id });
    const page = await dashboard.visit("/", { key: null, provoked: /^404 / });
    await signIn(page, key);
    await sees(page, "No endpoint yet");
    expect(await page.getByText("of-the-admin").count()).toBe(0);

    await page.goto(`${dashboard.server.url}/endpoints/${endpoint}`);
    await page.getByRole("alert").first().waitFor();
    expect(await page.getByText("of-the-admin").count()).toBe(0);
  });
});
