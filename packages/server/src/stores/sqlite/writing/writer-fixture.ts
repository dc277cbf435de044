import { Refusal } from "../../../errors.js";

/** How a call ended: `done`, the code of its refusal, or its error. */
export const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error) => (error instanceof Refusal ? error.code : String(error)),
  );
