import type { ClientRequest } from "node:http";
import { limits } from "../../limits/index.js";

/** Bounds the time for a request's connection to be made: by itself, Node waits as long as the system does. */
export function boundConnect(asked: ClientRequest): void {
  asked.once("socket", (socket) => {
    if (!socket.connecting) return;
    const timeOut = () => asked.destroy(Object.assign(new Error("no connection"), { code: "UND_ERR_CONNECT_TIMEOUT" }));
    const timer = setTimeout(timeOut, limits.gateConnectMs);
    const clear = () => clearTimeout(timer);
    socket.once("connect", clear).once("close", clear);
  });
}
