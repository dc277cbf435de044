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

  it.each([undefined, "", "nothing", "a:b"])("that is none is not read: %s", (text) => {
    expect(readAddress(text)).toBeUndefined();
  });
});

describe("The ports that variables name", () => {
  it("are theirs, and absent where nothing is named", () => {
    expect(namedPorts({ PORT: "8080", PORT_HEALTH: "9" })).toEqual({ port: 8_080, healthPort: 9 });
    expect(namedPorts({ PORT: "" })).toEqual({});
  });

  it.each(["0", "65536", "80a", "-1", "1e3"])("may not be %s", (PORT) => {
    expect(() => namedPorts({ PORT })).toThrow(/PORT is not a port/);
  });
});

describe("A server may dial", () => {
  const at = (host: string) => ({ host, port: 80, healthPort: 80 });
  test.each([
    { it: "a process of its own host", host: "127.0.0.1", isOwn: true, isContainer: false, may: true },
    { it: "a container of its own host", host: "172.17.0.2", isOwn: true, isContainer: true, may: true },
    { it: "no container whose address is not known yet", host: "", isOwn: true, isContainer: true, may: false },
    {
      it: "a process of another host at an address of the network",
      host: "10.0.0.2",
      isOwn: false,
      isContainer: false,
      may: true,
    },
    // the same address is somebody else's here
    { it: "no loopback of another host", host: "127.0.0.1", isOwn: false, isContainer: false, may: false },
    { it: "no bridge of another host", host: "172.17.0.2", isOwn: false, isContainer: true, may: false },
  ])("$it", ({ host, isOwn, isContainer, may }) => {
    expect(mayDial(at(host), isOwn, isContainer)).toBe(may);
  });
});
