import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { limits } from "../../../limits/index.js";
import { refuseUnread } from "./refuse-unread.js";

it("A client that continues to send after a refusal is disconnected", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const client = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void client.destroy());
  const [socket] = await once(server, "connection");
  refuseUnread("ERR_HTTP_REQUEST_TIMEOUT", socket);
  for (let left = 2; left > 0; left--) {
    client.write(" ");
    await once(socket, "data");
    vi.advanceTimersByTime(limits.lingerMs / 2 - 1);
  }
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(2);
  expect(socket.destroyed).toBe(true);
});
