// Does nothing, for many jobs at a time: what is measured is the way there and back.
export default (input) => ({ greeting: input.name });
export const options = { concurrency: 64 };
