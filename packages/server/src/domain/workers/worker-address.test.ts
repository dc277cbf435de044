import { describe, expect, it, test } from "vitest";
import { addressText, mayDial, namedPorts, readAddress } from "./worker-address.js";

describe("An address", () => {
  test.each([
    { host: "127.0.0.1", port: 8_000, healthPort: 8_000, text: "127.0.0.1:8000" },
    { host: "172.17.0.2", port: 80, healthPort: 8_081, text: "172.17.0.2:80/8081" },
    { host: "fd00::2", port: 80, healthPort: 81, text: "[fd00::2]:80/81" },
    { host: "", port: 80, healthPort: 80, text: ":80" },
  ])("is stored as $text and read back", ({ text, ...address }) => {
    expect(addressText(address)).toBe(text);
    expect(readAddress(text)).toEqual(address);
  });

  it.each([undefined, "", "nothing", "a:b"])("that is invalid is not read: %s", (text) => {
    expect(readAddress(text)).toBeUndefined();
  });
});

describe("The ports in a worker's variables", () => {
  it("are read, and absent if no variable names one", () => {
    expect(namedPorts({ PORT: "8080", PORT_HEALTH: "9" })).toEqual({ port: 8_080, healthPort: 9 });
    expect(namedPorts({ PORT: "" })).toEqual({});
  });

  it.each(["0", "65536", "80a", "-1", "1e3"])("may not be %s", (PORT) => {
    expect(() => namedPorts({ PORT })).toThrow(/PORT is not a port/);
  });
});

describe("A server may dial", () => {
  const at = (host: string) => ({ host, port: 80, healthPort: 80 });
  const bridge = { reachedFrom: "host" } as const;
  const pods = { reachedFrom: "anywhere" } as const;
  test.each([
    { it: "a worker on the network of its own host", host: "127.0.0.1", isOwn: true, network: undefined, may: true },
    { it: "a worker on a bridge of its own host", host: "172.17.0.2", isOwn: true, network: bridge, may: true },
    { it: "no worker whose address is not known yet", host: "", isOwn: true, network: bridge, may: false },
    { it: "a worker at the address of another host", host: "10.0.0.2", isOwn: false, network: undefined, may: true },
    { it: "a worker of another host on a shared network", host: "10.1.0.2", isOwn: false, network: pods, may: true },
    // The same address belongs to something else on this host.
    { it: "no loopback of another host", host: "127.0.0.1", isOwn: false, network: undefined, may: false },
    { it: "no bridge of another host", host: "172.17.0.2", isOwn: false, network: bridge, may: false },
  ])("$it", ({ host, isOwn, network, may }) => {
    expect(mayDial(at(host), isOwn, network)).toBe(may);
  });
});
