import { changed } from "../../domain/access/audit.js";
import type { Endpoint } from "../../domain/endpoints/endpoint.js";
import { releaseNumbers } from "../../domain/endpoints/release.js";
import type { Template } from "../../domain/endpoints/template.js";
import { isPod } from "../../domain/pods/pod.js";
import { auditing } from "../../store/audit.js";
import type { Needs } from "../needs.js";

/** The endpoints that use a template. A pod keeps a copy of its own. */
export const usersOf = ({ registry }: Needs<"registry">, template: Template) =>
  registry
    .endpoints()
    .filter((each) => each.deletedAt === undefined && !isPod(each) && each.settings.templateId === template.id);

/** Deletes a template that was made with an endpoint, once no endpoint uses it. Within a change. */
export async function dropInlineTemplate(needs: Needs<"registry">, templateId: string): Promise<void> {
  const template = needs.registry.template(templateId);
  if (!template?.settings.isInline || usersOf(needs, template).length > 0) return;
  auditing.note(changed("template.delete", template.id, { ...template.settings }, undefined));
  await needs.registry.removeTemplate(template);
}

/** Deletes the templates that were made with a deleted endpoint, those of its earlier versions among them. Within a change. */
export async function dropInlineTemplates(needs: Needs<"registry">, endpoint: Endpoint): Promise<void> {
  const ids = new Set([endpoint.settings.templateId]);
  for (const n of releaseNumbers(endpoint)) {
    const release = await needs.registry.release(endpoint.no, n);
    if (release) ids.add(release.settings.templateId);
  }
  for (const id of ids) await dropInlineTemplate(needs, id);
}
