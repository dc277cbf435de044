import { changed } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import type { Receiver, ReceiverState } from "../../store/index.js";
import { type Caller, changeAs } from "../access/change-as.js";
import { seesMore } from "../access/visible.js";
import type { Needs } from "../needs.js";
import { iso } from "../show-resources.js";

type Looking = Needs<"receivers">;

const states = ["healthy", "failing", "paused"] as const satisfies readonly ReceiverState[];

const isState = (text: string): text is ReceiverState => (states as readonly string[]).includes(text);

/** What a caller asks of the list of receivers, as it came. */
interface ReceiversAsked {
  readonly after?: string | undefined;
  readonly state?: string | undefined;
  readonly limit?: string | undefined;
}

/** A receiver as callers see it, with how many deliveries wait for its resumption. */
function showWith({ id, origin, failures, failingAt, error, attemptedAt, pausedAt }: Receiver, held: number) {
  const state = pausedAt !== undefined ? "paused" : failures >= limits.receiverFailing ? "failing" : "healthy";
  return {
    id,
    origin,
    state,
    lastAttemptAt: iso(attemptedAt),
    failures,
    ...(failingAt === undefined ? {} : { failingSince: iso(failingAt) }),
    ...(error === undefined ? {} : { lastError: error }),
    ...(pausedAt === undefined ? {} : { pausedAt: iso(pausedAt) }),
    held,
  };
}

export async function showReceivers({ receivers }: Looking, some: readonly Receiver[]) {
  const held = await receivers.holding(some.map(({ no }) => no));
  return some.map((receiver) => showWith(receiver, held.get(receiver.no) ?? 0));
}

/** A page of the caller's receivers, by origin; `after`: the origin of the last one of the page before. */
export async function receiversOf(
  needs: Looking,
  caller: ApiKey,
  { after, state, limit = String(limits.receiversShown) }: ReceiversAsked,
) {
  seesMore(caller, "webhook receivers");
  const count = Number(limit);
  if (!/^\d{1,3}$/.test(limit) || count < 1 || count > limits.receiversShown)
    throw invalid(`'limit' must be a whole number from 1 to ${limits.receiversShown}.`);
  if (state !== undefined && !isState(state)) throw invalid(`'state' must be one of ${states.join(", ")}.`);
  const asked = { ownerNo: caller.ownerNo, after, state, failing: limits.receiverFailing, limit: count };
  return showReceivers(needs, await needs.receivers.list(asked));
}

/** One of the caller's receivers. */
export async function ownReceiver({ receivers }: Looking, caller: ApiKey, id: string): Promise<Receiver> {
  seesMore(caller, "webhook receivers");
  const found = await receivers.find(id);
  if (found?.ownerNo === caller.ownerNo) return found;
  throw new Refusal("NOT_FOUND", `There is no webhook receiver '${id.slice(0, 80)}' for this key.`);
}

/** Holds a receiver's deliveries back, or sends what was held. What is the case already stays as it is. */
export async function turnReceiver(
  needs: Looking & Needs<"registry" | "clock" | "bell" | "news">,
  asking: Caller,
  id: string,
  to: "pause" | "resume",
): Promise<Receiver> {
  const saved = await changeAs(needs, asking, async (caller) => {
    const receiver = await ownReceiver(needs, caller, id);
    const pausedAt = to === "resume" ? undefined : (receiver.pausedAt ?? needs.clock.now());
    if (pausedAt === receiver.pausedAt) return receiver;
    const { origin } = receiver;
    auditing.note(
      changed(`receiver.${to}`, id, { origin, isPaused: to === "resume" }, { origin, isPaused: to === "pause" }),
    );
    await needs.receivers.pause(receiver.no, pausedAt);
    return { ...receiver, pausedAt };
  });
  needs.bell.ring("deliveries");
  needs.news.noteWebhooks(saved.ownerNo);
  return saved;
}
