import { describe, expect, it, test } from "vitest";
import { type Hop, replyHeaders, requestHeaders } from "./headers.js";
import { targetOf } from "./target.js";

const hop: Hop = {
  address: "9.9.9.9",
  isSecure: false,
  host: "here",
  prefix: "",
  requestId: "id",
  httpVersion: "1.1",
  isTrusted: false,
};
const own = [
  "x-forwarded-for",
  "9.9.9.9",
  "x-forwarded-proto",
  "http",
  "x-forwarded-host",
  "here",
  "via",
  "1.1 millrace",
  "x-request-id",
  "id",
];

describe("A worker is sent", () => {
  it("the client's headers unchanged", () => {
    const raw = ["Host", "here", "X-A", "1", "x-a", "2", "Cookie", "a=b"];
    expect(requestHeaders(raw, hop)).toEqual([...raw, ...own]);
  });

  it("none of the headers that Connection names, except those that must stay", () => {
    const raw = ["Connection", "X-A, content-length , close", "X-A", "1", "Content-Length", "3", "Host", "here"];
    expect(requestHeaders(raw, hop)).toEqual(["Content-Length", "3", "Host", "here", ...own]);
  });

  it("our own headers, even if the client's Connection names them", () => {
    expect(requestHeaders(["Connection", "x-forwarded-for, via, x-request-id"], hop)).toEqual(own);
  });

  it.each([
    "Authorization",
    "AUTHORIZATION",
    "X-Forwarded-For",
    "X_Forwarded_For",
    "X-Real_IP",
    "Forwarded",
    "TE",
    "Upgrade",
    "Expect",
  ])("no %s from a client", (name) => {
    expect(requestHeaders([name, "evil"], hop)).toEqual(own);
  });

  it("a trusted proxy's headers, with the proxy's own address appended", () => {
    const raw = [
      "X-Forwarded-For",
      "1.1.1.1",
      "X-Forwarded-Proto",
      "https",
      "X-Forwarded-Host",
      "front",
      "X-Request-ID",
      "theirs",
      "Via",
      "2 front",
    ];
    expect(requestHeaders(raw, { ...hop, isTrusted: true, prefix: "/lb/a" })).toEqual([
      "X-Forwarded-Proto",
      "https",
      "X-Forwarded-Host",
      "front",
      "X-Request-ID",
      "theirs",
      "x-forwarded-for",
      "1.1.1.1, 9.9.9.9",
      "x-forwarded-prefix",
      "/lb/a",
      "via",
      "2 front, 1.1 millrace",
    ]);
    expect(requestHeaders(["Authorization", "key"], { ...hop, isTrusted: true })).toEqual(own);
  });
});

it("A client is sent the worker's headers byte for byte, except those of the connection", () => {
  const raw = [
    "Set-Cookie",
    "a=caf\u00e9",
    "Set-Cookie",
    "b",
    "Connection",
    "close, X-B",
    "X-B",
    "1",
    "Transfer-Encoding",
    "chunked",
    "Trailer",
    "X-C",
  ];
  const bytes = raw.map((part) => Buffer.from(part, "latin1"));
  const ends = ["Set-Cookie", "a=caf\u00e9", "Set-Cookie", "b"];
  expect(replyHeaders(bytes)).toEqual(ends);
  expect(replyHeaders(bytes, true)).toEqual([...ends, "Trailer", "X-C"]);
});

const id = "abcdefghij0123";
test.each([
  { url: `/lb/${id}/a//b%2F?c`, path: "/a//b%2F?c", prefix: `/lb/${id}` },
  { url: `/lb/${id}`, path: "/", prefix: `/lb/${id}` },
  { url: `/lb/${id}?c`, path: "/?c", prefix: `/lb/${id}` },
  { url: "/any", host: `${id}.lb.test`, path: "/any", prefix: "" },
  { url: "/any", host: `${id.toUpperCase()}.LB.test.:80`, path: "/any", prefix: "" },
  { url: `/lb/other/x`, host: `${id}.lb.test`, path: "/lb/other/x", prefix: "" },
])("$url at $host is for the endpoint's $path", ({ url, host, ...target }) => {
  expect(targetOf(url, host, "lb.test")).toEqual({ endpointId: id, ...target });
});
test.each([
  { url: "/v2/a/run", host: "here" },
  { url: "/lbx", host: "here" },
  { url: "/", host: "lb.test" },
  { url: "/", host: `a.${id}.lb.test` },
  { url: "/", host: `${id}.xlb.test` },
  { url: "/", host: `${id}.lb.test.evil` },
])("$url at $host belongs to no endpoint", ({ url, host }) => {
  expect(targetOf(url, host, "lb.test")).toBeUndefined();
});
