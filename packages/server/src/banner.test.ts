import { describe, expect, it } from "vitest";
import { banner, namedFacts } from "./banner.js";
import { readConfig } from "./config.js";

const url = "http://127.0.0.1:8000";
const dashboardUrl = "http://127.0.0.1:8000/";
const kept = { url, dashboardUrl, newKey: undefined, key: "mr_kept" };
const made = { url, dashboardUrl, newKey: "mr_made", key: "mr_made" };
const elsewhere = { url, dashboardUrl, newKey: undefined, key: undefined };
const shown = (env: Record<string, string>, millrace: Parameters<typeof banner>[1]["millrace"], isTerminal = true) =>
  banner(readConfig({ MILLRACE_DATA_DIR: "/data", ...env }), { millrace, isTerminal, demo: undefined });

describe("The text that a start prints", () => {
  it("says so if webhooks may reach private addresses", () => {
    expect(shown({}, kept)).toMatch(/webhooks +may go to private addresses.*MILLRACE_WEBHOOK_PRIVATE=off/);
    expect(shown({ MILLRACE_TRUST_PROXY: "on" }, kept)).not.toContain("webhooks");
    expect(shown({ MILLRACE_HOST: "0.0.0.0" }, kept)).not.toContain("webhooks");
  });

  it.each([{ MILLRACE_TRUST_PROXY: "on" }, { MILLRACE_HOST: "0.0.0.0" }])(
    "says that %s accepts every host name",
    (env) => {
      expect(shown(env, kept)).toMatch(/host names +all are accepted \(list yours in MILLRACE_HOST_NAMES\)/);
      expect(shown({ ...env, MILLRACE_HOST_NAMES: "millrace.example" }, kept)).not.toContain("host names");
      expect(shown({}, kept)).not.toContain("host names");
    },
  );

  it("names the dashboard, with the link of a first start only on a terminal", () => {
    const link = `${dashboardUrl}#once=token`;
    expect(shown({}, kept)).toMatch(/dashboard +http:\/\/127\.0\.0\.1:8000\/\n/);
    expect(shown({}, { ...made, dashboardUrl: link })).toContain(link);
    expect(shown({}, { ...made, dashboardUrl: link }, false)).not.toContain("once");
  });

  it("shows a new key only on a terminal; elsewhere it says where the key is stored", () => {
    expect(shown({}, made)).toMatch(/API key +mr_made +\(shown once; kept in \/data\/api-key\)/);
    expect(shown({}, made)).toContain('-H "Authorization: Bearer mr_made"');
    const journal = shown({}, made, false);
    expect(journal).not.toContain("mr_made");
    expect(journal).toMatch(/API key +made, and kept in \/data\/api-key\n/);
    expect(journal).toContain('-H "Authorization: Bearer $(cat /data/api-key)"');
  });

  it("never shows a key that is not new", () => {
    for (const isTerminal of [true, false]) expect(shown({}, kept, isTerminal)).not.toContain("mr_kept");
  });

  it("names no file for a key that another server of the database stores", () => {
    const text = shown({}, elsewhere);
    expect(text).not.toContain("/data/api-key");
    expect(text).toMatch(/API key +the one that the first server of this database keeps/);
    expect(text).toContain('-H "Authorization: Bearer $MILLRACE_API_KEY"');
  });

  it("is told to programs by name, without a key", () => {
    const config = readConfig({ MILLRACE_DATA_DIR: "/data" });
    const facts = namedFacts(config, {
      millrace: { ...made, dashboardUrl: `${dashboardUrl}#once=token` },
      demo: undefined,
    });
    expect(facts).toMatchObject({
      dashboard: dashboardUrl,
      data: "/data",
      "API key": "made, and kept in /data/api-key",
    });
    expect(JSON.stringify(facts)).not.toMatch(/mr_made|once/);
  });
});
