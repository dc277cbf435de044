import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { passedOn } from "../../operations/access/server-marks.js";

/** The header of a reply that gives a passed-on request back; its value is a verdict. */
export const declined = "x-millrace-declined";

/** Headers of a single connection, not forwarded (RFC 9110, 7.6.1). */
const hopByHop = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
];
/** Headers that a client must not set unless a proxy of ours is in front. */
const forwarding = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-prefix",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-forwarded-ssl",
  "x-real-ip",
];
/** Headers for us: the key is not for workers, and we answer expectations ourselves. */
const ours = ["authorization", "proxy-authorization", "expect", passedOn];
/** Always rewritten, even if the sender is trusted. */
const saidAnew = ["x-forwarded-for", "x-forwarded-prefix", "via"];

const fromClients = new Set([...hopByHop, ...ours, ...forwarding, ...saidAnew]);
const fromProxies = new Set([...hopByHop, ...ours, ...saidAnew]);
const fromServers = new Set([...hopByHop, ...ours]);
const fromWorkers = new Set([...hopByHop, declined]);
/** The lengths of header names to compare in replies: names of other lengths need no comparison. */
const toldApart = new Set([...fromWorkers, "content-length"].map(({ length }) => length));
/** Naming these in Connection does not remove them. */
const kept = new Set(["host", "content-length", "content-type", "cache-control", "x-request-id"]);

export interface Hop {
  /** The client's address by its socket. */
  readonly address: string;
  readonly isSecure: boolean;
  readonly host: string;
  /** The part removed from the path. */
  readonly prefix: string;
  readonly requestId: string;
  readonly httpVersion: string;
  /** Whether its forwarding headers are trusted, because it is a proxy of ours. */
  readonly isTrusted: boolean;
}

/** The headers of a client's request as its worker gets them, see {@link requestHeaders}. */
export function headersFrom(request: IncomingMessage, hop: Pick<Hop, "prefix" | "requestId" | "isTrusted">): string[] {
  const { socket, headers, httpVersion, rawHeaders } = request;
  return requestHeaders(rawHeaders, {
    address: plainAddress(socket.remoteAddress),
    isSecure: (socket as TLSSocket).encrypted === true,
    host: headers.host ?? "",
    prefix: hop.prefix,
    requestId: hop.requestId,
    httpVersion,
    isTrusted: hop.isTrusted,
  });
}

/** Shows an IPv4-mapped IPv6 address as the IPv4 address. */
const plainAddress = (address = "unknown"): string => (address.startsWith("::ffff:") ? address.slice(7) : address);

/** The headers for a worker, in order and with repetitions: names and values alternate. */
export function requestHeaders(raw: readonly string[], hop: Hop): string[] {
  const dropped = hop.isTrusted ? fromProxies : fromClients;
  const headers: string[] = [];
  let named: Set<string> | undefined;
  let forwardedFor = "";
  let via = "";
  let saysProto = false;
  let saysHost = false;
  let saysId = false;
  for (let at = 0; at < raw.length; at += 2) {
    const [name, value] = [raw[at] as string, raw[at + 1] as string];
    const lower = name.toLowerCase();
    // many servers read `_` as `-`: a header dropped under one name must not pass under the other
    const plain = lower.includes("_") ? lower.replaceAll("_", "-") : lower;
    if (lower === "connection") named = namedIn(value, named);
    else if (lower === "via") via += `${value}, `;
    else if (lower === "x-forwarded-for" && hop.isTrusted) forwardedFor += `${value}, `;
    if (dropped.has(plain)) continue;
    if (lower === "x-forwarded-proto") saysProto = true;
    else if (lower === "x-forwarded-host") saysHost = true;
    else if (lower === "x-request-id") saysId = true;
    headers.push(name, value);
  }
  const left = named ? without(headers, named) : headers;
  left.push("x-forwarded-for", forwardedFor + hop.address);
  if (!saysProto) left.push("x-forwarded-proto", hop.isSecure ? "https" : "http");
  if (!saysHost && hop.host !== "") left.push("x-forwarded-host", hop.host);
  if (hop.prefix !== "") left.push("x-forwarded-prefix", hop.prefix);
  left.push("via", `${via}${hop.httpVersion} millrace`);
  if (!saysId) left.push("x-request-id", hop.requestId);
  return left;
}

/** The headers of a request passed on by another server, which has already rewritten them. */
export function passedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    if (!fromServers.has((raw[at] as string).toLowerCase())) headers.push(raw[at] as string, raw[at + 1] as string);
  }
  return headers;
}

/**
 * The client's headers for a worker's reply, from raw bytes. `mayTrail`: whether trailers can follow if there is no
 * length.
 */
export function replyHeaders(raw: readonly (Buffer | string)[], mayTrail = false): string[] {
  const headers: string[] = [];
  const trailers: string[] = [];
  let named: Set<string> | undefined;
  let hasLength = false;
  for (let at = 0; at < raw.length; at += 2) {
    const [name, value] = [textOf(raw[at]), textOf(raw[at + 1])];
    const lower = toldApart.has(name.length) ? name.toLowerCase() : "";
    if (lower === "content-length") hasLength = true;
    else if (lower === "connection") named = namedIn(value, named);
    else if (lower === "trailer") trailers.push(name, value);
    if (!fromWorkers.has(lower)) headers.push(name, value);
  }
  if (mayTrail && !hasLength) headers.push(...trailers);
  return named ? without(headers, named) : headers;
}

const textOf = (part: Buffer | string | undefined): string =>
  typeof part === "string" ? part : (part?.toString("latin1") ?? "");

/** The headers that Connection names, except headers that mean nothing here or must stay. */
function namedIn(value: string, before: Set<string> | undefined): Set<string> | undefined {
  let named = before;
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name === "" || name === "close" || name === "keep-alive" || fromClients.has(name) || kept.has(name)) continue;
    named = (named ?? new Set()).add(name);
  }
  return named;
}

function without(headers: readonly string[], named: ReadonlySet<string>): string[] {
  const left: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    if (!named.has((headers[at] as string).toLowerCase())) left.push(headers[at] as string, headers[at + 1] as string);
  }
  return left;
}
