// The other end of `startAgent`: a process that runs the bench's requests, and ends with it.

/** Answers each request with the result of the function named by its verb. */
export function obey(verbs) {
  process.on("message", async ({ no, verb, argument }) => {
    try {
      process.send({ no, value: await verbs[verb](argument) });
    } catch (error) {
      process.send({ no, error: error.stack });
    }
  });
  process.on("disconnect", () => process.exit());
  // In a terminal the whole group is interrupted; the bench ends its processes itself, in order.
  process.on("SIGINT", () => {});
}
