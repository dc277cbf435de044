import { describe, expect, it } from "vitest";
import { mayCall } from "./server.js";

describe("A server calls another server", () => {
  const at = (host: string, machine?: string) => ({ host, port: 8000, ...(machine === undefined ? {} : { machine }) });

  it("at a network address, wherever that is", () => {
    expect([mayCall(at("10.0.0.2", "a"), at("10.0.0.1", "b")), mayCall(at("server-2"), at("server-1"))]).toEqual([
      true,
      true,
    ]);
  });

  it.each(["127.0.0.1", "127.0.0.2", "::1", "localhost"])("at %s only on its own machine", (host) => {
    expect(mayCall(at(host, "a"), at(host, "a"))).toBe(true);
    expect([mayCall(at(host, "a"), at(host, "b")), mayCall(at(host), at(host))]).toEqual([false, false]);
  });
});
