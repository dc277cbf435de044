import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { realTime } from "../../../clock.js";
import { findAccess } from "./access.js";

const base64 = (text: string) => Buffer.from(text).toString("base64");

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "millrace-kubeconfig-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(text: string): string {
  const path = join(folder, `config-${++files}`);
  writeFileSync(path, text);
  return path;
}

const config = (user: string, context = "one") =>
  write(`
apiVersion: v1
kind: Config
current-context: ${context}
clusters:
  - name: here
    cluster: {server: "https://cluster.test:6443/", certificate-authority-data: ${base64("authority")}}
contexts:
  - {name: one, context: {cluster: here, user: me, namespace: team}}
  - {name: two, context: {cluster: here, user: other}}
users:
  - {name: me, user: ${user}}
  - {name: other, user: {token: of-two}}
`);

const found = (path: string, context?: string) => findAccess({ KUBECONFIG: path }, context);

describe("A kubeconfig", () => {
  it("leads to its current context's cluster", async () => {
    const access = found(config("{token: secret-1}"));
    expect(access).toMatchObject({ server: "https://cluster.test:6443", namespace: "team", ca: "authority" });
    expect(await access.credential()).toMatchObject({ token: "secret-1" });
  });

  it("may be asked for another context", async () => {
    const access = found(config("{}"), "two");
    expect(access.namespace).toBeUndefined();
    expect(await access.credential()).toMatchObject({ token: "of-two" });
  });

  it("may name certificates beside it, and a file with a token that is renewed", async () => {
    writeFileSync(join(folder, "me.crt"), "certificate");
    writeFileSync(join(folder, "me.token"), "first\n");
    const access = found(
      config(`{client-certificate: me.crt, client-key-data: ${base64("key")}, tokenFile: me.token}`),
    );
    expect(await access.credential()).toMatchObject({ cert: "certificate", key: "key", token: "first" });
    writeFileSync(join(folder, "me.token"), "second\n");
    expect(await access.credential()).toMatchObject({ token: "second" });
  });

  it("leads to the cluster that we run in if its user has our pod's token", () => {
    const token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    expect(found(config(`{tokenFile: ${token}}`)).isInside).toBe(true);
    expect(found(config("{tokenFile: token}")).isInside).toBe(false);
  });

  it("of several, each adds what the ones before lack", async () => {
    const users = write("users: [{name: elsewhere, user: {token: of-second}}]\ncurrent-context: never");
    const contexts = write(
      "contexts: [{name: mixed, context: {cluster: here, user: elsewhere}}]\ncurrent-context: mixed",
    );
    const access = found([contexts, users, config("{}")].join(":"));
    expect(await access.credential()).toMatchObject({ token: "of-second" });
  });

  it.each([
    ["a context that is not there", "{}", "three", /no context 'three'/],
    ["an old auth-provider", "{auth-provider: {name: oidc}}", undefined, /auth-provider 'oidc'.*exec plugin/],
  ])("is refused with %s", (_, user, context, words) => {
    expect(() => found(config(user), context)).toThrow(words);
  });

  it("that is missing, and no pod's account either, is said", () => {
    expect(() => findAccess({ KUBECONFIG: join(folder, "none") }, undefined)).toThrow(/cannot be read/);
    expect(() => findAccess({ HOME: folder }, undefined)).toThrow(/set KUBECONFIG, or run the service in a pod/);
  });
});

describe("An exec plugin", () => {
  const plugin = (script: string) =>
    config(
      JSON.stringify({
        exec: {
          apiVersion: "client.authentication.k8s.io/v1",
          command: "/bin/sh",
          args: ["-c", script],
          env: [{ name: "COUNT", value: join(folder, `count-${files}`) }],
        },
      }),
    );
  const print = (expires: string) =>
    `echo x >>"$COUNT"; printf '{"status":{"token":"t%s","expirationTimestamp":"${expires}"}}' $(wc -l <"$COUNT")`;

  it("is asked once while its credential is good, and again when that was refused", async () => {
    const { credential } = found(plugin(print("2999-01-01T00:00:00Z")));
    const both = await Promise.all([credential(), credential()]);
    expect([...both, await credential()].map(({ token }) => token)).toEqual(["t1", "t1", "t1"]);
    // one that was refused although it is new would be refused again
    expect(await credential(true)).toMatchObject({ token: "t1" });
    const now = realTime.monotonicMs();
    vi.spyOn(realTime, "monotonicMs").mockReturnValue(now + 11_000);
    expect(await credential(true)).toMatchObject({ token: "t2" });
    vi.restoreAllMocks();
  });

  it("is asked again when its credential is about to expire", async () => {
    const { credential } = found(plugin(print("2020-01-01T00:00:00Z")));
    expect([await credential(), await credential()].map(({ token }) => token)).toEqual(["t1", "t2"]);
  });

  it.each([
    ["fails", "echo 'sign in first' >&2; exit 1", /gave no credential: sign in first/],
    ["prints no JSON", "echo hello", /did not print JSON/],
    ["prints nothing of use", "echo '{}'", /printed no credential/],
  ])("that %s says so", async (_, script, words) => {
    await expect(found(plugin(script)).credential()).rejects.toThrow(words);
  });
});
