import { earliest } from "../../domain/earliest.js";
import { isPod, type Pod, turned } from "../../domain/pods/pod.js";
import { limits } from "../../limits/index.js";
import type { Parts } from "../../operations/needs.js";
import { removePod, savePod } from "../../operations/pods/save-pod.js";
import { auditing } from "../../store/audit.js";
import type { Loop } from "../loop.js";

/** Stops or deletes pods at the times that their users have set. */
export function endDuePodsLoop(needs: Parts): Loop {
  return {
    name: "end-due-pods",
    topics: ["demand"],
    gapMs: limits.podEndGapMs,
    async tick(now, signal) {
      let lookAt: number | undefined;
      for (const pod of needs.registry.endpoints()) {
        if (!isPod(pod) || pod.deletedAt !== undefined || signal.aborted) continue;
        const at = dueAt(pod);
        if (at !== undefined && at <= now) await end(needs, pod);
        lookAt = earliest(lookAt, at); // one that was stopped may yet have to be deleted
      }
      return lookAt;
    },
  };
}

/** When a pod ends by itself. One that is stopped cannot be stopped again, only deleted. */
function dueAt({ settings: { pod } }: Pod): number | undefined {
  return earliest(pod.terminateAt, pod.desiredStatus === "RUNNING" ? pod.stopAt : undefined);
}

function end(needs: Parts, { id, ownerNo }: Pod): Promise<void> {
  const { registry, clock } = needs;
  const actor = {
    userNo: ownerNo,
    userId: registry.user(ownerNo)?.id ?? "",
    keyId: "",
    keyPrefix: "",
    at: clock.now(),
  };
  return registry.exclusively(ownerNo, () =>
    auditing.run(actor, async () => {
      const now = clock.now();
      const pod = registry.pod(id);
      const at = pod && dueAt(pod);
      if (!pod || at === undefined || at > now) return; // its user was faster
      if ((pod.settings.pod.terminateAt ?? Number.POSITIVE_INFINITY) <= now) return removePod(needs, pod, true);
      const settings = turned(pod.settings, "EXITED", { at: now, by: "Stopped at its stopAfter" });
      await savePod(needs, pod, settings, { action: "pod.stop", why: "its pod's time is over" });
    }),
  );
}
