import { expect, test } from "vitest";
import { readConfig } from "../config.js";
import { serverAddress } from "./addresses.js";

test.each([
  { it: "the address that it listens on", env: { MILLRACE_HOST: "10.0.0.1" }, at: "10.0.0.1 8123" },
  { it: "loopback if it listens there", env: { MILLRACE_WORKER_URL: "http://proxy:9000" }, at: "127.0.0.1 8123" },
  { it: "loopback if it has no name", env: { MILLRACE_HOST: "0.0.0.0" }, at: "127.0.0.1 8123" },
  { it: "a loopback address as it is", env: { MILLRACE_HOST: "::1" }, at: "::1 8123" },
  {
    it: "the name that workers use if it listens on every address",
    env: { MILLRACE_HOST: "::", MILLRACE_WORKER_URL: "http://server-1:8000" },
    at: "server-1 8123",
  },
  { it: "the configured address", env: { MILLRACE_SERVER_ADDRESS: "server-1:9000" }, at: "server-1 9000" },
  { it: "the configured address, of IPv6", env: { MILLRACE_SERVER_ADDRESS: "[fd00::1]:9000" }, at: "fd00::1 9000" },
])("A server is reached at $it", ({ env, at }) => {
  const { host, port, machine } = serverAddress(readConfig(env), 8123);
  expect(`${host} ${port}`).toBe(at);
  expect(machine).toBe(serverAddress(readConfig({}), 1).machine);
});

test.each(["server-1", "http://server-1:8000", "fd00::1", "server-1:0", "server-1:99999"])(
  "A server's address is not %s",
  (text) => {
    expect(() => readConfig({ MILLRACE_SERVER_ADDRESS: text })).toThrow(
      /MILLRACE_SERVER_ADDRESS is '.*': it must be host:port/,
    );
  },
);
