import { limits } from "../../limits/index.js";

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

/** Everything that is recorded: the kind of resource, and what was done to it. */
export const actions = [
  "delivery.redeliver",
  "endpoint.create",
  "endpoint.update",
  "endpoint.delete",
  "endpoint.purgeQueue",
  "endpoint.restart",
  "endpoint.rollback",
  "key.create",
  "key.update",
  "key.delete",
  "key.rotate",
  "pod.create",
  "pod.update",
  "pod.delete",
  "pod.start",
  "pod.stop",
  "pod.restart",
  "pod.reset",
  "prices.update",
  "receiver.pause",
  "receiver.resume",
  "registryAuth.create",
  "registryAuth.update",
  "registryAuth.delete",
  "secret.create",
  "secret.update",
  "secret.delete",
  "template.create",
  "template.update",
  "template.delete",
  "user.create",
  "user.update",
  "user.delete",
  "user.rotateWebhookSecret",
  "user.transfer",
  "volume.create",
  "volume.update",
  "volume.delete",
  "worker.pause",
  "worker.stop",
] as const;
export type Action = (typeof actions)[number];

type Fields = Readonly<Record<string, unknown>>;

/** What was changed: `before` is absent for something new, `after` for something deleted. Neither holds secrets. */
export interface Change {
  readonly action: Action;
  /** The resource's id. */
  readonly resource: string;
  readonly before?: Fields;
  readonly after?: Fields;
}

/** A change as it was recorded. */
export interface AuditEntry extends Actor, Change {
  readonly no: number;
}

/**
 * A change of a resource, reduced to the fields that differ. Values of environments are hidden, long values are cut, and
 * of very many fields or variables only some are kept: an entry is a record, not a copy.
 */
export function changed(
  action: Action,
  resource: string,
  before: Fields | undefined,
  after: Fields | undefined,
): Change {
  const names = [...new Set(Object.keys({ ...before, ...after }))].filter(
    (name) => !isSame(before?.[name], after?.[name]),
  );
  const sideOf = (side: Fields, other: Fields = {}) => {
    const fields: Record<string, unknown> = {};
    let left: number = limits.auditSideCharsMax;
    for (const name of names) {
      const value = name === "env" ? hidden(side.env, other.env) : side[name];
      if (value === undefined) continue;
      fields[name] = shortened(value, Math.min(left, limits.auditValueCharsMax));
      left = Math.max(0, left - JSON.stringify(fields[name]).length);
    }
    return fields;
  };
  return {
    action,
    resource,
    ...(before ? { before: sideOf(before, after) } : {}),
    ...(after ? { after: sideOf(after, before) } : {}),
  };
}

/** A change of a resource that is kept; undefined if no field differs. */
export function updated(action: Action, resource: string, before: Fields, after: Fields): Change | undefined {
  const change = changed(action, resource, before, after);
  return isSame(change.before, {}) && isSame(change.after, {}) ? undefined : change;
}

/** A deletion. Of another user's resource it is recorded that it was deleted, but not what was in it. */
export const deleted = (action: Action, resource: string, before: Fields, isOwn: boolean): Change =>
  isOwn ? changed(action, resource, before, undefined) : { action, resource };

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** A value as it is, or the beginning of its JSON text if that is longer than `charsMax`. */
function shortened(value: unknown, charsMax: number): unknown {
  const text = JSON.stringify(value);
  return text.length <= charsMax ? value : `${text.slice(0, charsMax)}… (${text.length} characters)`;
}

/** The names of the variables that differ: their values may be secrets. */
function hidden(env: unknown = {}, other: unknown = {}): Fields {
  const [own, others] = [env as Fields, other as Fields];
  const differing = Object.keys(own).filter((name) => own[name] !== others[name]);
  return Object.fromEntries(differing.map((name) => [name, "…"]));
}
