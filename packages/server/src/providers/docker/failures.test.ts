import { describe, expect, it } from "vitest";
import { whyNot, whyNotPulled } from "./failures.js";

/** Messages in the words of engines and registries. */
const pulls: readonly [meaning: RegExp, said: string][] = [
  [/has no such image or tag/, "manifest for team/echo:2 not found: manifest unknown: manifest unknown"],
  [/has no such image or tag/, "Error response from daemon: manifest unknown"],
  [
    /has no such image, or asks for credentials \(containerRegistryAuthId/,
    "pull access denied for team/echo, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
  ],
  [/has no such image, or asks for credentials/, "unauthorized: authentication required"],
  [/has no such image, or asks for credentials/, "Head https://r.example/v2/a/manifests/1: no basic auth credentials"],
  [/could not be reached/, "Get https://r.example/v2/: dial tcp: lookup r.example on 127.0.0.1:53: no such host"],
  [/could not be reached/, "Get http://localhost:1/v2/: dial tcp 127.0.0.1:1: connect: connection refused"],
  [
    /could not be reached/,
    "Get https://r.example/v2/: net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)",
  ],
  [/could not be reached/, "x509: certificate signed by unknown authority"],
  [/could not be reached/, "received unexpected HTTP status: 503 Service Unavailable"],
  [
    /disk is full/,
    "failed to register layer: Error processing tar file(exit status 1): write /a: no space left on device",
  ],
  [/no more pulls from here/, "toomanyrequests: You have reached your pull rate limit."],
  [/other kinds of machines/, "no matching manifest for linux/s390x in the manifest list entries"],
  [/no name of an image/, "invalid reference format: repository name must be lowercase"],
];

const auth = { username: "some.one", password: 'a "$&(secret' };

describe("A pull that failed", () => {
  it.each([
    ["plainly", `denied: some.one may not, with ${auth.password} as password`],
    ["in the form of a URL", `Get https://some.one:${encodeURIComponent(auth.password)}@r.example: unauthorized`],
    ["in quotes", JSON.stringify(`${auth.username}:${auth.password}`)],
    ["in the form of a header", `Basic ${Buffer.from(`some.one:${auth.password}`).toString("base64")} is unauthorized`],
    ["where the message is cut", `${"x".repeat(490)} ${auth.password}`],
  ])("does not reveal credentials that a registry repeats %s", (_how, text) => {
    const { message } = whyNotPulled(new Error(text), "a:1", auth);
    expect(message).toContain("…");
    expect(message).not.toMatch(/some\.one|secret|a "|a %22|a%20%22|c29tZS5vbmU|a \\"/);
  });

  it("keeps its message readable even if the user's name is a single letter", () => {
    const short = { username: "a", password: "long enough" };
    expect(whyNotPulled(new Error("a bad manifest of a"), "b:1", short).message).toMatch(/: … bad manifest of …$/);
  });

  it.each(pulls)("means %s if the engine says %j", (meaning, text) => {
    const { message, blame } = whyNotPulled(new Error(text), "team/echo:2", undefined);
    expect(message).toMatch(/^the image 'team\/echo:2' is not on this machine and could not be pulled: /);
    expect(message).toMatch(meaning);
    expect(message).toContain(text);
    expect(blame).toBe("image");
  });

  it("for lack of access mentions the credentials if there were any", () => {
    const refused = whyNotPulled(new Error("unauthorized: incorrect username or password"), "a:1", auth);
    expect(refused.message).toMatch(/does not accept the credentials of the template/);
  });

  it("is reported unchanged if its meaning is unknown", () => {
    expect(whyNotPulled(new Error("the moon is full"), "a:1", undefined).message).toMatch(/pulled: the moon is full$/);
  });
});

describe("A container that could not be started", () => {
  it.each([
    ["gpu", 'could not select device driver "" with capabilities: [[gpu]]'],
    [
      "gpu",
      "OCI runtime create failed: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
    ],
    ["image", 'OCI runtime create failed: exec: "/serve": stat /serve: no such file or directory: unknown'],
    ["image", "No such image: a:1"],
    ["start", "mkdir /var/lib/docker/overlay2/x: read-only file system"],
  ])("is blamed on %s if the engine says %j", (blame, text) => {
    expect(whyNot(Object.assign(new Error(text), { statusCode: 500 }), "a:1", "unix:///x")).toMatchObject({ blame });
  });
});
