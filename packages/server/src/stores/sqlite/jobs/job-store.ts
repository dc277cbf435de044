import { auditing } from "../../../store/audit.js";
import type { JobStore } from "../../../store/index.js";
import { ofEntry } from "../../tables/audit.js";
import type { TextCutter, TextPiece } from "../texts/stored-texts.js";
import { sizeOf } from "../writing/parcel.js";
import type { GroupWriter } from "../writing/writer.js";

/** The queue's writes as calls to the writer. */
export function sqliteJobStore(writer: GroupWriter, texts: TextCutter): JobStore {
  return {
    submit: (job) => {
      const pieces: TextPiece[] = [];
      const args = [{ ...job, body: texts.cut(job.body, pieces) }];
      return writer.admit("submit", args, { bytes: sizeOf(job.body), endpointNo: job.endpointNo, pieces });
    },
    isInOrder: true,
    take: (take) => writer.follow("take", [take], take.endpointNo),
    settle: (report) => {
      const { endpointNo, verdict } = report;
      const pieces: TextPiece[] = [];
      const output = verdict.output === undefined ? undefined : texts.cut(verdict.output, pieces);
      const args = [{ ...report, verdict: { ...verdict, output } }];
      return writer.word("settle", args, { bytes: sizeOf(verdict.output), endpointNo, pieces });
    },
    progress: (said) => {
      const pieces: TextPiece[] = [];
      const args = [{ ...said, progress: texts.cut(said.progress, pieces) }];
      return writer.word("progress", args, { bytes: sizeOf(said.progress), endpointNo: said.endpointNo, pieces });
    },
    change: (changing) => writer.word("change", [changing]),
    begin: (begun) => writer.word("begin", [begun]),
    setTtl: (ttl) => writer.call("setTtl", [ttl]),
    confirmStopped: (stopped) => writer.word("confirmStopped", [stopped]),
    cancelWaiting: (purge) => {
      const args = [purge, auditing.take().map(ofEntry)];
      return writer.word("cancelWaiting", args, { endpointNo: purge.endpointNo });
    },
    sweep: (batch) => writer.word("sweep", [batch]),
  };
}
