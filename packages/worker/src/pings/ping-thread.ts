import { limits } from "../limits.js";

// The thread that pings. It sleeps before it loads anything: no ping is due yet, and the first job of a new worker
// should have the processor.
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limits.pingThreadRestMs);
await import("./ping-loop.js");
