/** A move that is refused for a reason its operator can fix: one sentence. */
export class Refused extends Error {}
