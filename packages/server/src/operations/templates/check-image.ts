import { isPath, type TemplateSettings } from "../../domain/endpoints/template.js";
import { invalid } from "../../errors.js";
import type { Needs } from "../needs.js";

/** Refuses an image that is here and cannot run. An image still to be pulled is judged at its first start. */
export async function checkImage(
  { here, registry }: Needs<"here" | "registry">,
  { imageName, dockerEntrypoint, dockerStartCmd }: TemplateSettings,
): Promise<void> {
  // if there are other hosts, it may be meant for their kind of machine
  if (!here.imageComplaint || isPath(imageName) || registry.hosts.length > 1) return;
  const complaint = await here.imageComplaint(imageName, dockerEntrypoint.length + dockerStartCmd.length > 0);
  if (complaint !== undefined) throw invalid(`${complaint[0]?.toUpperCase()}${complaint.slice(1)}.`);
}
