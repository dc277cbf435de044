import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { TestDocker } from "../../scripts/docker.mjs";

const digest = (bytes: Buffer) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
const manifestType = "application/vnd.docker.distribution.manifest.v2+json";

/** The credentials that a registry accepts, and the scheme: with each call, or for a token. */
export interface Gate {
  readonly scheme: "basic" | "bearer";
  readonly username: string;
  readonly password: string;
}

/**
 * A read-only registry (version 2 of the API) that serves an engine's images. On request it sends half of a layer and
 * waits until `goOn`.
 */
export class TestRegistry {
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifests = new Map<string, Buffer>();
  readonly #server: Server;
  /** Undefined: no credentials are needed. */
  gate: Gate | undefined;
  /** How many requests had the right credentials. */
  welcomes = 0;
  #goOn: () => void = () => {};
  #mayGoOn: Promise<void> = Promise.resolve();

  private constructor() {
    this.#server = createServer(async (request, reply) => {
      const { url = "" } = request;
      if (this.gate && !this.#letsIn(this.gate, request, reply)) return;
      const [, name, kind, reference = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(url) ?? [];
      const found = kind === "blobs" ? this.#blobs.get(reference) : this.#manifests.get(`${name}:${reference}`);
      if (url === "/v2/") reply.writeHead(200, { "docker-distribution-api-version": "registry/2.0" }).end("{}");
      else if (!found) {
        reply.writeHead(404, { "content-type": "application/json" });
        reply.end(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: "manifest unknown" }] }));
      } else {
        const type = kind === "blobs" ? "application/octet-stream" : manifestType;
        const headers = {
          "content-type": type,
          "content-length": found.length,
          "docker-content-digest": digest(found),
        };
        reply.writeHead(200, headers);
        if (request.method === "HEAD") return void reply.end();
        reply.write(found.subarray(0, found.length / 2));
        if (kind === "blobs") await this.#mayGoOn;
        reply.end(found.subarray(found.length / 2));
      }
    });
  }

  /** Answers a request that is refused or asks for a token; returns whether the request may proceed. */
  #letsIn({ scheme, username, password }: Gate, request: IncomingMessage, reply: ServerResponse): boolean {
    const basic = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const isKnown = request.headers.authorization === basic;
    if (isKnown) this.welcomes++;
    const token = "a-token-of-this-registry";
    if (request.url?.startsWith("/token")) {
      reply.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" });
      const unauthorized = { errors: [{ code: "UNAUTHORIZED", message: "incorrect username or password" }] };
      reply.end(JSON.stringify(isKnown ? { token, expires_in: 300 } : unauthorized));
      return false;
    }
    if (scheme === "basic" ? isKnown : request.headers.authorization === `Bearer ${token}`) return true;
    const challenge =
      scheme === "basic" ? 'Basic realm="test"' : `Bearer realm="http://${this.host}/token",service="test"`;
    reply.writeHead(401, { "content-type": "application/json", "www-authenticate": challenge });
    reply.end(JSON.stringify({ errors: [{ code: "UNAUTHORIZED", message: "authentication required" }] }));
    return false;
  }

  static async open(): Promise<TestRegistry> {
    const registry = new TestRegistry();
    await new Promise<void>((done) => registry.#server.listen(0, "127.0.0.1", done));
    return registry;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /**
   * Takes an image from an engine under a new name, optionally marked with another architecture, and resolves with its
   * reference.
   */
  keep(engine: Pick<TestDocker, "saveImage">, image: string, name: string, architecture?: string): string {
    const folder = mkdtempSync(join(tmpdir(), "millrace-registry-"));
    const tar = join(folder, "image.tar");
    engine.saveImage(image, tar);
    execFileSync("tar", ["-C", folder, "-xf", tar]);
    const [{ Config, Layers }] = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8"));
    const settings = JSON.parse(readFileSync(join(folder, Config), "utf8"));
    const config = Buffer.from(JSON.stringify({ ...settings, ...(architecture && { architecture }) }));
    const layers = (Layers as string[]).map((path) => gzipSync(readFileSync(join(folder, path)), { level: 1 }));
    rmSync(folder, { recursive: true });
    for (const blob of [config, ...layers]) this.#blobs.set(digest(blob), blob);
    const listed = (mediaType: string, blob: Buffer) => ({ mediaType, size: blob.length, digest: digest(blob) });
    const manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: manifestType,
        config: listed("application/vnd.docker.container.image.v1+json", config),
        layers: layers.map((layer) => listed("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)),
      }),
    );
    for (const reference of ["1", digest(manifest)]) this.#manifests.set(`${name}:${reference}`, manifest);
    return `${this.host}/${name}:1`;
  }

  /** From now on, layers stop in their middle, until `goOn`. */
  hold(): void {
    this.#mayGoOn = new Promise((goOn) => {
      this.#goOn = goOn;
    });
  }
  goOn = (): void => this.#goOn();

  async close(): Promise<void> {
    this.goOn();
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}
