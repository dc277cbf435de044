// Resources that a part of the bench has opened, and how to close them, also when the bench is interrupted.
const open = new Set();

/** Resources that are closed in the opposite order. */
export class Scope {
  #ends = [];

  constructor() {
    open.add(this);
  }

  /** Remembers how to close a resource that was just opened. */
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

/** Closes everything that is open, the newest first; a failure to close one does not keep the rest open. */
export async function endAll() {
  for (const scope of [...open].reverse()) await scope.end().catch(() => {});
}

/** Runs `work` with a new scope. */
export async function within(work) {
  const scope = new Scope();
  try {
    return await work(scope);
  } finally {
    await scope.end();
  }
}
