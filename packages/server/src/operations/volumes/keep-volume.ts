import { join } from "node:path";
import { sizeBytes, type Volume } from "../../domain/endpoints/volume.js";
import type { Needs } from "../needs.js";

type Keeping = Needs<"here" | "emit">;

/** Makes a volume's directory on this host if it is missing, and enforces its size. Resolves with its path. */
export async function keepVolume(needs: Keeping, volume: Pick<Volume, "id" | "size">): Promise<string> {
  const { dir, quota } = needs.here.volumes;
  const path = join(dir, volume.id);
  await quota.make(path);
  await boundVolume(needs, volume);
  return path;
}

/**
 * Enforces the size of a volume on this host if the file system can; if it cannot, exceeding the size is only reported.
 */
export async function boundVolume({ here, emit }: Keeping, volume: Pick<Volume, "id" | "size">): Promise<void> {
  const { dir, quota, bounds, held } = here.volumes;
  const bytes = sizeBytes(volume);
  const before = bounds.get(volume.id);
  if (before?.bytes === bytes && before.why === undefined) return;
  const unbound = await quota.bound(join(dir, volume.id), bytes).catch((error: Error) => error.message);
  const why = unbound ?? held?.unbounded;
  bounds.set(volume.id, { bytes, why });
  const told = { volumeId: volume.id, sizeGb: volume.size };
  if (why === undefined) emit({ type: "volume.bounded", ...told, by: quota.by ?? "nothing" });
  else if (why !== before?.why)
    emit({ type: "volume.unbounded", ...told, why, isExpected: quota.by === undefined || held !== undefined });
}
