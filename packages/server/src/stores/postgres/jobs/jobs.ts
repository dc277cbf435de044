import { auditing } from "../../../store/audit.js";
import type { JobStore } from "../../../store/index.js";
import { ofEntry } from "../../tables/audit.js";
import type { Lanes } from "../writer.js";
import { beginVerb, cancelWaitingVerb, changeVerb, confirmStoppedVerb, setTtlVerb } from "./change.js";
import { progressVerb, settleVerb } from "./settle.js";
import { submitVerb } from "./submit.js";
import { sweepVerb } from "./sweep.js";
import { takeVerb } from "./take.js";

/** The queue's writes: clients' calls on one set of connections, workers' reports and our own writes on another. */
export function postgresJobStore(calls: Lanes, words: Lanes): JobStore {
  const take = takeVerb();
  return {
    submit: (job) => calls.call(submitVerb, [job], job.body.length),
    isInOrder: false,
    take: (asked) => words.call(take, [asked]),
    settle: (report) => words.call(settleVerb, [report], report.verdict.output?.length ?? 0),
    progress: (said) => words.call(progressVerb, [said], said.progress.length),
    change: (changing) => (changing.change.by === "cancel" ? calls : words).call(changeVerb, [changing]),
    begin: (begun) => words.call(beginVerb, [begun]),
    setTtl: (ttl) => calls.call(setTtlVerb, [ttl]),
    confirmStopped: (stopped) => words.call(confirmStoppedVerb, [stopped]),
    cancelWaiting: (purge) => words.call(cancelWaitingVerb, [purge, auditing.take().map(ofEntry)]),
    sweep: (batch) => words.call(sweepVerb, [batch]),
  };
}
