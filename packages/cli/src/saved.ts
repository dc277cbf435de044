import type { Endpoint, Template } from "@millrace/api";
import type { Calls } from "./calls.js";
import { listEndpoints } from "./endpoints.js";

type Fields = Readonly<Record<string, unknown>>;

/** What a save by name has done. */
export interface Saved {
  readonly endpoint: Endpoint;
  readonly template: Template;
  readonly isNew: boolean;
  /** Whether its workers are replaced: what they are made of has changed. */
  readonly isReplaced: boolean;
}

/** Creates the template and the endpoint of this name, or brings those that exist up to date. */
export async function saveByName(
  calls: Calls,
  name: string,
  fields: { template: Fields; endpoint: Fields },
): Promise<Saved> {
  const before = (await listEndpoints(calls)).find((each) => each.name === name || each.name === `${name} -fb`);
  const templates = await calls.call<Template[]>("GET", "/v1/templates");
  const known = templates.find((each) => each.name === name);
  const template = await (known
    ? calls.call<Template>("PATCH", `/v1/templates/${known.id}`, fields.template)
    : calls.call<Template>("POST", "/v1/templates", { name, isServerless: true, ...fields.template }));
  const settings = { ...fields.endpoint, templateId: template.id };
  try {
    const endpoint = await (before
      ? calls.call<Endpoint>("PATCH", `/v1/endpoints/${before.id}`, settings)
      : calls.call<Endpoint>("POST", "/v1/endpoints", { name, ...settings }));
    return { endpoint, template, isNew: before === undefined, isReplaced: before?.version !== endpoint.version };
  } catch (error) {
    if (!known) await calls.call("DELETE", `/v1/templates/${template.id}`).catch(() => {});
    throw error;
  }
}
