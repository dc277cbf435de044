/** Where a request came from. */
export interface Via {
  readonly address: string;
  readonly requestId: string;
}

/** Who makes a change. */
export interface Actor extends Partial<Via> {
  readonly userNo: number;
  readonly userId: string;
  readonly keyId: string;
  readonly keyPrefix: string;
  readonly at: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** What was changed: `before` is absent for something new, `after` for something deleted. Neither holds secrets. */
export interface Change {
  /** The kind of resource and what was done to it: `endpoint.update`. */
  readonly action: string;
  /** The resource's id. */
  readonly resource: string;
  readonly before?: Fields;
  readonly after?: Fields;
}

/** A change as it was recorded. */
export interface AuditEntry extends Actor, Change {
  readonly no: number;
}

/** A change of a resource, reduced to the fields that differ. Values of environments are hidden. */
export function changed(
  action: string,
  resource: string,
  before: Fields | undefined,
  after: Fields | undefined,
): Change {
  const names = [...new Set(Object.keys({ ...before, ...after }))].filter(
    (name) => !isSame(before?.[name], after?.[name]),
  );
  const sideOf = (side: Fields, other: Fields = {}) =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = name === "env" ? hidden(side.env, other.env) : side[name];
        return value === undefined ? [] : [[name, value]];
      }),
    );
  return {
    action,
    resource,
    ...(before ? { before: sideOf(before, after) } : {}),
    ...(after ? { after: sideOf(after, before) } : {}),
  };
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** The names of the variables that differ: their values may be secrets. */
function hidden(env: unknown = {}, other: unknown = {}): Fields {
  const [own, others] = [env as Fields, other as Fields];
  const differing = Object.keys(own).filter((name) => own[name] !== others[name]);
  return Object.fromEntries(differing.map((name) => [name, "…"]));
}
