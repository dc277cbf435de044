import type { Pod } from "../../domain/pods/pod.js";
import type { Needs } from "../needs.js";

/** Records which host has a pod's own volume, before it is made there: from then on the pod is placed only there. */
export async function noteVolumeHost({ registry }: Needs<"registry">, pod: Pod, hostNo: number): Promise<void> {
  if (pod.settings.pod.volumeHostNo !== undefined) return;
  await registry.exclusively(pod.ownerNo, async () => {
    const current = registry.pod(pod.id);
    if (!current || current.settings.pod.volumeHostNo !== undefined) return;
    const { settings } = current;
    await registry.saveEndpoint(current, { ...settings, pod: { ...settings.pod, volumeHostNo: hostNo } }, undefined);
  });
}
