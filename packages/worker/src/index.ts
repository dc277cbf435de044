export type { Handler, Job, ServeOptions } from "./handler/handler.js";
export type { Log } from "./log.js";
export { serve } from "./serve.js";
