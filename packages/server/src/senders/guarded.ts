import { lookup as resolve } from "node:dns";
import { Readable } from "node:stream";
import ipaddr from "ipaddr.js";
import { Agent, buildConnector, request } from "undici";
import { realTime } from "../clock.js";
import { harmless } from "../domain/plain-text.js";
import { limits } from "../limits/index.js";
import type { Sender } from "../sender.js";
import { readInTurns } from "../turns.js";

/**
 * Whether an address is public: not private, loopback, link-local, multicast, reserved or unassigned, nor such an
 * address mapped to IPv6.
 */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  // only 2000::/3 is assigned: other addresses may be routed inside a network, or get a meaning later
  if (parsed instanceof ipaddr.IPv6 && !parsed.match(globalUnicast)) return false;
  return parsed.range() === "unicast";
}

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");

/** Ports below 1024 belong to mail, shells and name servers, some of which can be addressed through HTTP. */
const isWebPort = (port: string): boolean => port === "" || port === "80" || port === "443" || Number(port) >= 1_024;

class Refused extends Error {}
const refused = (why: string): string => `the target was refused: ${why}; MILLRACE_WEBHOOK_PRIVATE=on allows it`;
const late = `no whole answer within ${limits.webhookTimeoutMs / 1_000} s`;

/** Connects only to addresses checked after name resolution. What receivers answer is read in turns. */
function guardedConnector(allowPrivate: boolean): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: limits.webhookTimeoutMs,
    lookup: (hostname, options, callback) => {
      resolve(hostname, { ...options, all: true }, (error, addresses) => {
        if (error) return callback(error, "", 0);
        const forbidden = allowPrivate ? undefined : addresses.find(({ address }) => !isPublicAddress(address));
        // naming the address would reveal our network to the caller
        if (forbidden) return callback(new Refused("its address is not a public one"), "", 0);
        if (options.all) return callback(null, addresses);
        callback(null, addresses[0]!.address, addresses[0]!.family);
      });
    },
  });
  return (to, done) =>
    connect(to, (...[error, socket]) => {
      if (error) return done(error, null);
      readInTurns(socket, ["receivers", to.hostname]);
      done(null, socket);
    });
}

/** A sender that connects only to addresses checked after name resolution. */
export function guardedSender({ allowPrivate }: { allowPrivate: boolean }): Sender {
  const agent = new Agent({
    connections: limits.webhookConcurrencyPerHost,
    headersTimeout: limits.webhookTimeoutMs,
    bodyTimeout: limits.webhookTimeoutMs,
    keepAliveTimeout: limits.webhookIdleMs,
    keepAliveMaxTimeout: limits.webhookIdleMs,
    allowH2: false,
    connect: guardedConnector(allowPrivate),
  });
  return {
    async post(url, body, headers, signal) {
      if (signal.aborted) return { status: undefined, error: "the server stops" };
      const over = new AbortController();
      let why = late;
      const abort = () => over.abort();
      const timer = realTime.after(limits.webhookTimeoutMs, abort);
      signal.addEventListener("abort", abort, { once: true });
      try {
        const { hostname, port, username, password } = new URL(url);
        const literal = hostname.replace(/^\[|\]$/g, "");
        // literal addresses are dialled without a lookup
        if (!allowPrivate && ipaddr.isValid(literal) && !isPublicAddress(literal)) {
          return { status: undefined, error: refused(`${literal} is not a public address`) };
        }
        if (!allowPrivate && !isWebPort(port)) {
          return { status: undefined, error: refused(`port ${port} is neither 80, 443 nor above 1023`) };
        }
        let hints = 0;
        const reply = await request(url, {
          method: "POST",
          onInfo: () => {
            if (++hints <= limits.webhookHintsMax) return;
            why = `the receiver sent more than ${limits.webhookHintsMax} informational replies`;
            abort();
          },
          body: body.length === 1 ? body[0]! : Readable.from(body),
          headers: {
            ...headers,
            ...(username + password === "" ? {} : { authorization: basic(username, password) }),
            "content-length": String(body.reduce((bytes, { length }) => bytes + length, 0)),
          },
          dispatcher: agent,
          signal: over.signal,
        });
        const text = await beginningOf(reply.body);
        const isPlain = reply.headers["content-encoding"] === undefined;
        return { status: reply.statusCode, error: undefined, reply: isPlain && text !== "" ? text : undefined };
      } catch (error) {
        return { status: undefined, error: over.signal.aborted ? why : reason(error) };
      } finally {
        realTime.cancel(timer);
        signal.removeEventListener("abort", abort);
      }
    },
    close: () => agent.destroy(),
  };
}

/** The header for a user name and a password as a URL holds them. */
const basic = (...words: readonly string[]): string =>
  `Basic ${Buffer.from(words.map(decoded).join(":")).toString("base64")}`;

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word; // a percent sign of its own
  }
}

/** Reads a bounded part of a reply, so that the connection can be reused. Keeps the beginning, as plain text. */
async function beginningOf(body: AsyncIterable<Uint8Array> & { destroy(): unknown }): Promise<string> {
  const kept: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    // a copy: a slice would keep all of its chunk in memory
    if (bytes < limits.webhookReplyKept) kept.push(Uint8Array.from(chunk.subarray(0, limits.webhookReplyKept - bytes)));
    bytes += chunk.length;
    if (bytes > limits.webhookReplyBytesMax) break;
  }
  body.destroy();
  return harmless(new TextDecoder().decode(Buffer.concat(kept), { stream: true }));
}

function reason(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (cause instanceof Refused) return refused(cause.message);
  if (!(cause instanceof Error)) return "the call failed";
  return "code" in cause && typeof cause.code === "string" ? `the call failed: ${cause.code}` : "the call failed";
}
