// Does nothing, for many jobs at a time: only the round trip is measured.
export default (input) => ({ greeting: input.name });
export const options = { concurrency: 64 };
