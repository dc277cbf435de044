// The other end of `startAgent`: a process that does what the bench asks of it, and ends with it.

/** Answers each question with what the function of its verb returns. */
export function obey(verbs) {
  process.on("message", async ({ no, verb, argument }) => {
    try {
      process.send({ no, value: await verbs[verb](argument) });
    } catch (error) {
      process.send({ no, error: error.stack });
    }
  });
  process.on("disconnect", () => process.exit());
  // in a terminal the whole group is interrupted: the bench ends its processes itself, in order
  process.on("SIGINT", () => {});
}
