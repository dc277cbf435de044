import { limits } from "./limits.js";

// The thread that pings. It sleeps before it loads what it needs: no ping is due yet, and the first job of a worker
// that has just started should have the processor.
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limits.pingThreadRestMs);
await import("./ping-loop.js");
