import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A registry (version 2 of the API) to which images are pushed. It keeps their names only. */
export interface PushedTo {
  /** Its host and port. */
  readonly address: string;
  /** The images whose manifests have come, with their tags. */
  pushed(): readonly string[];
  close(): Promise<void>;
}

/** Opens a registry on this machine. */
export async function openRegistry(): Promise<PushedTo> {
  const pushed: string[] = [];
  /** The uploads that are going on, and the sizes of the blobs that have come. */
  const uploads: { readonly hash: ReturnType<typeof createHash>; bytes: number }[] = [];
  const blobs = new Map<string, number>();

  async function answer(request: IncomingMessage, reply: ServerResponse): Promise<void> {
    const { method, url = "" } = request;
    const { pathname, searchParams } = new URL(url, "http://registry");
    const say = (status: number, headers: Record<string, string> = {}) => void reply.writeHead(status, headers).end();
    const bytes = await bodyOf(request);
    if (pathname === "/v2/") return say(200);
    const [, name, kind, last = ""] =
      /^\/v2\/(.+?)\/(?:blobs\/)?(uploads|blobs|manifests)\/([^/]*)$/.exec(pathname) ?? [];
    if (kind === "uploads" && method === "POST") {
      uploads.push({ hash: createHash("sha256"), bytes: 0 });
      return say(202, { location: `${pathname}${uploads.length - 1}`, range: "0-0" });
    }
    if (kind === "uploads") {
      const upload = uploads[Number(last)];
      if (!upload) return say(404);
      for (const each of bytes) upload.hash.update(each);
      upload.bytes += bytes.reduce((sum, { length }) => sum + length, 0);
      if (method === "PATCH") return say(202, { location: pathname, range: `0-${upload.bytes - 1}` });
      const digest = `sha256:${upload.hash.digest("hex")}`;
      if (digest !== searchParams.get("digest")) return say(400);
      blobs.set(digest, upload.bytes);
      return say(201, { location: pathname, "docker-content-digest": digest });
    }
    const size = kind === "blobs" ? blobs.get(last) : undefined;
    if (size !== undefined) return say(200, { "content-length": String(size), "docker-content-digest": last });
    if (kind !== "manifests" || method !== "PUT") return say(404);
    pushed.push(`${name}:${last}`);
    const digest = createHash("sha256").update(Buffer.concat(bytes)).digest("hex");
    return say(201, { location: pathname, "docker-content-digest": `sha256:${digest}` });
  }

  const server = createServer((request, reply) => void answer(request, reply).catch(() => reply.destroy()));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    pushed: () => pushed,
    close: async () => {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer[]> {
  const bytes: Buffer[] = [];
  for await (const each of request) bytes.push(each as Buffer);
  return bytes;
}
