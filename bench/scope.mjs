// What a part of the bench has begun, and how to end it: also when the bench is interrupted.
const open = new Set();

/** Things that were begun, ended in the opposite order. */
export class Scope {
  #ends = [];

  constructor() {
    open.add(this);
  }

  /** Remembers how to end something that was begun just now. */
  defer(end) {
    this.#ends.push(end);
  }

  async end() {
    const failures = [];
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) {
      await Promise.resolve()
        .then(end)
        .catch((error) => failures.push(error));
    }
    open.delete(this);
    if (failures.length > 0) throw failures[0];
  }
}

/** Ends whatever is open, the youngest first; what cannot be ended does not keep the rest. */
export async function endAll() {
  for (const scope of [...open].reverse()) await scope.end().catch(() => {});
}

/** Runs `work` with a scope of its own. */
export async function within(work) {
  const scope = new Scope();
  try {
    return await work(scope);
  } finally {
    await scope.end();
  }
}
