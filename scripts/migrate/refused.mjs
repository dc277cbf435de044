/** It cannot be moved, and its operator can mend that: one sentence. */
export class Refused extends Error {}
