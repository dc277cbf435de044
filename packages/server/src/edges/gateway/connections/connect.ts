import type { ClientRequest } from "node:http";
import { realTime } from "../../../clock.js";
import { limits } from "../../../limits/index.js";

/** Bounds the time for a request's connection to be made: by itself, Node waits as long as the system does. */
export function boundConnect(asked: ClientRequest): void {
  asked.once("socket", (socket) => {
    if (!socket.connecting) return;
    const timeOut = () => asked.destroy(Object.assign(new Error("no connection"), { code: "UND_ERR_CONNECT_TIMEOUT" }));
    const timer = realTime.after(limits.gateConnectMs, timeOut);
    const clear = () => realTime.cancel(timer);
    socket.once("connect", clear).once("close", clear);
  });
}
