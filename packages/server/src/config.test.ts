import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ConfigError, readConfig } from "./config.js";
import { limits } from "./limits/index.js";
import { settings } from "./settings.js";

function mistakesOf(env: Record<string, string>): string[] {
  try {
    readConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n");
    throw error;
  }
  return [];
}

describe("The settings", () => {
  it("have the documented defaults", () => {
    expect(readConfig({})).toMatchObject({
      host: "127.0.0.1",
      port: 8000,
      dataDir: join(process.cwd(), ".millrace"),
      apiKey: undefined,
      rateLimits: true,
      requestsPerWorker: 100,
      startTimeoutMs: limits.startTimeoutMsDefault,
      stopGraceMs: limits.stopGraceMsDefault,
      awayMs: limits.awayMsDefault,
      demo: true,
      banner: true,
      localProcesses: true,
      location: undefined,
      logLevel: "info",
      logFormat: "auto",
      commit: undefined,
    });
  });

  it("are read from the environment; an empty variable counts as absent", () => {
    const config = readConfig({
      PATH: "/bin",
      MILLRACE_HOST: "",
      MILLRACE_PORT: "0",
      MILLRACE_DATA_DIR: "~/data",
      MILLRACE_RATE_LIMITS: "off",
      MILLRACE_AWAY_MAX: "60",
      MILLRACE_WORKER_URL: "http://10.0.0.1:8000/",
      MILLRACE_LOCATION: "CZ",
      MILLRACE_DEMO: "off",
    });
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 0,
      dataDir: join(homedir(), "data"),
      rateLimits: false,
      awayMs: 60_000,
      workerUrl: "http://10.0.0.1:8000",
      location: "CZ",
      demo: false,
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  it.each([
    ["all", "all"],
    ["none", []],
    ["0,2 , 11", ["0", "2", "11"]],
    ["GPU-5f1c3a9e-0000-4000-8000-000000000001,3", ["GPU-5f1c3a9e-0000-4000-8000-000000000001", "3"]],
  ])("name the GPUs that may be given out: %s", (text, expected) => {
    expect(readConfig({ MILLRACE_GPUS: text }).gpus).toEqual(expected);
  });

  it.each(["all,0", "0,", "0 1", "GPU", "-1", "none,1", "GPU-xyz"])("do not take '%s' for a list of GPUs", (text) => {
    expect(mistakesOf({ MILLRACE_GPUS: text })).toEqual([expect.stringContaining("indexes and UUIDs")]);
  });

  it("enforce GPUs depending on what is found, unless set", () => {
    const enforced = (text: string) => readConfig({ MILLRACE_ENFORCE_GPUS: text }).enforceGpus;
    expect([enforced(""), enforced("on"), enforced("off")]).toEqual([undefined, true, false]);
  });

  it("leave the command line's variables alone", () => {
    expect(() => readConfig({ MILLRACE_URL: "http://rack:8000", MILLRACE_CONFIG_DIR: "/home/me" })).not.toThrow();
    expect(mistakesOf({ MILLRACE_COMMIT: "main" })).toEqual(["MILLRACE_COMMIT is 'main': it must be a commit's hash."]);
  });

  it("report all mistakes at once, one sentence each", () => {
    const mistakes = mistakesOf({
      MILLRACE_PORT: "80000",
      MILLRACE_RATE_LIMITS: "yes",
      MILLRACE_AWAY_MAX: "1.5",
      MILLRACE_STOP_GRACE: "long",
      MILLRACE_WORKER_URL: "ftp://x",
      MILLRACE_LOCATION: "ZZ",
      MILLRACE_LOG_LEVEL: "loud",
      MILLRACE_GPUS: "first",
      MILLRACE_ENFORCE_GPUS: "maybe",
      MILLRACE_COLOUR: "red",
      MILLRACE_PORT_2: "1",
      MILLRACE_DATABASE_URL: "mysql://me:secret@localhost/x",
    });
    expect(mistakes.map((mistake) => mistake.match(/MILLRACE_\w+/)?.[0]).sort()).toEqual([
      "MILLRACE_AWAY_MAX",
      "MILLRACE_COLOUR",
      "MILLRACE_DATABASE_URL",
      "MILLRACE_ENFORCE_GPUS",
      "MILLRACE_GPUS",
      "MILLRACE_LOCATION",
      "MILLRACE_LOG_LEVEL",
      "MILLRACE_PORT",
      "MILLRACE_PORT_2",
      "MILLRACE_RATE_LIMITS",
      "MILLRACE_STOP_GRACE",
      "MILLRACE_WORKER_URL",
    ]);
    expect(mistakes.find((mistake) => mistake.includes("MILLRACE_PORT is"))).toBe(
      "MILLRACE_PORT is '80000': it must be a whole number from 0 to 65535.",
    );
    for (const mistake of mistakes) expect(mistake).toMatch(/\.$/);
  });

  it.each([
    ["MILLRACE_PORT", "-1"],
    ["MILLRACE_PORT", "0x50"],
    ["MILLRACE_PORT", " 80"],
    ["MILLRACE_PORT", "80a"],
    ["MILLRACE_START_TIMEOUT", "0"],
    ["MILLRACE_SEAL_KEY", "abc"],
    ["MILLRACE_API_KEY", "short"],
    ["MILLRACE_API_KEY", "with a blank inside it"],
    ["MILLRACE_DEMO", "ON"],
  ])("refuse %s=%s", (name, value) => {
    expect(mistakesOf({ [name]: value })).toHaveLength(1);
  });

  it("never show a key in a mistake", () => {
    const mistakes = mistakesOf({ MILLRACE_API_KEY: "s3cret", MILLRACE_SEAL_KEY: "s3cret" });
    expect(mistakes).toHaveLength(2);
    expect(mistakes.join()).not.toContain("s3cret");
  });

  it.each([
    ["127.0.0.1", undefined, true],
    ["127.8.8.8", undefined, true],
    ["localhost", undefined, true],
    ["::1", undefined, true],
    ["0.0.0.0", undefined, false],
    ["192.168.1.2", undefined, false],
    ["127.0.0.1", "off", false],
    ["0.0.0.0", "on", true],
  ])("let webhooks go to private addresses, listening on %s and set to %s: %s", (host, set, allowed) => {
    const env = { MILLRACE_HOST: host, ...(set ? { MILLRACE_WEBHOOK_PRIVATE: set } : {}) };
    expect(readConfig(env).webhookPrivate).toBe(allowed);
  });

  it.each([{ MILLRACE_TRUST_PROXY: "on" }, { MILLRACE_HOST_NAMES: "millrace.example.com" }])(
    "do not let webhooks go to private addresses if a proxy makes a server on loopback public: %j",
    (proxied) => {
      expect(readConfig(proxied).webhookPrivate).toBe(false);
      expect(readConfig({ ...proxied, MILLRACE_WEBHOOK_PRIVATE: "on" }).webhookPrivate).toBe(true);
    },
  );

  it.each(["a,,b", "http://a", "a:80", "-a", "*"])("do not take '%s' for host names", (text) => {
    expect(mistakesOf({ MILLRACE_HOST_NAMES: text })).toEqual([expect.stringContaining("host names, comma-separated")]);
  });

  it("each have one sentence for the reference page", () => {
    for (const [name, schema] of Object.entries(settings.properties)) {
      expect([name, (schema as { description?: string }).description]).toEqual([
        name,
        expect.stringMatching(/^[^.]+.*\.$/),
      ]);
    }
  });
});
