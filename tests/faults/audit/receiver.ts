import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { call } from "../../harness.js";
import type { Random } from "../random.js";
import type { Target } from "../scene.js";

/** One attempt to deliver a webhook, as it was received. */
export interface Delivery {
  /** The key of the submission that asked for it. */
  readonly key: string;
  readonly id: string;
  readonly body: string;
  readonly isSigned: boolean;
}

/** Collects webhooks. It answers most of them, refuses some, and hangs up on others. */
export interface Receiver {
  /** The webhook address for a submission. */
  url(key: string): string;
  readonly deliveries: readonly Delivery[];
  forget(): void;
  end(): Promise<void>;
}

/** Opens a receiver that checks signatures with the secret of a server's owner. */
export async function startReceiver(server: Target, random: Random): Promise<Receiver> {
  const secret = await secretOf(server);
  const deliveries: Delivery[] = [];
  const receiver = createServer(async (request, reply) => {
    const body = await text(request);
    deliveries.push({ ...read(request, body, secret) });
    if (random.chance(0.03)) return reply.destroy();
    return reply.writeHead(random.chance(0.05) ? 500 : 200).end();
  });
  receiver.on("clientError", (_, socket) => socket.destroy());
  await new Promise<void>((done) => receiver.listen(0, "127.0.0.1", done));
  const address = receiver.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: (key) => `http://127.0.0.1:${address.port}/${key}`,
    deliveries,
    forget: () => void deliveries.splice(0),
    async end() {
      receiver.closeAllConnections();
      await new Promise((done) => receiver.close(done));
    },
  };
}

async function secretOf(server: Target): Promise<Buffer> {
  const { body } = await call(server, "GET", "/v1/webhooks/secret");
  return Buffer.from(body.secret.slice("whsec_".length), "base64");
}

function read({ url, headers }: IncomingMessage, body: string, secret: Buffer): Delivery {
  const id = String(headers["webhook-id"]);
  return { key: (url ?? "").slice(1), id, body, isSigned: isSigned(headers, id, body, secret) };
}

/**
 * Checks a signature of Standard Webhooks by hand. The timestamp's age is not checked, because a campaign moves the
 * sender's clock.
 */
function isSigned(headers: IncomingHttpHeaders, id: string, body: string, secret: Buffer): boolean {
  const signed = `${id}.${headers["webhook-timestamp"]}.${body}`;
  const wanted = Buffer.from(`v1,${createHmac("sha256", secret).update(signed).digest("base64")}`);
  return String(headers["webhook-signature"])
    .split(" ")
    .some((given) => given.length === wanted.length && timingSafeEqual(Buffer.from(given), wanted));
}
