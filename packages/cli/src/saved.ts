import type { Endpoint, Template } from "@millrace/api";
import { shellWord } from "./called.js";
import type { Calls } from "./calls.js";
import { exits, Failure } from "./exit.js";
import { listEndpoints } from "./nouns/endpoints.js";

type Fields = Readonly<Record<string, unknown>>;

/** What is saved of a template and its endpoint: absent keeps, null clears. */
export interface SavedFields {
  readonly template: Fields;
  readonly endpoint: Fields;
}

/** What a save by name has done. */
export interface Saved {
  readonly endpoint: Endpoint;
  readonly template: Template;
  readonly isNew: boolean;
  /** Whether its workers are replaced: what they are made of has changed. */
  readonly isReplaced: boolean;
}

/**
 * Creates the template and the endpoint of this name, or brings those that exist up to date. `update`: what to save of
 * an endpoint that exists, if not all of the fields.
 */
export async function saveByName(
  calls: Calls,
  name: string,
  fields: SavedFields,
  update: (id: string) => SavedFields = () => fields,
): Promise<Saved> {
  const before = (await listEndpoints(calls)).find((each) => each.name === name || each.name === `${name} -fb`);
  if (before) assertSameKind(before, fields.endpoint);
  const changes = before ? update(before.id) : fields;
  const templates = await calls.call<Template[]>("GET", "/v1/templates");
  const known = templates.find((each) => each.name === name);
  const template = await (known
    ? calls.call<Template>("PATCH", `/v1/templates/${known.id}`, changes.template)
    : calls.call<Template>("POST", "/v1/templates", { name, isServerless: true, ...fields.template }));
  try {
    const { computeType: _, ...ofEndpoint } = changes.endpoint;
    const endpoint = await (before
      ? calls.call<Endpoint>("PATCH", `/v1/endpoints/${before.id}`, { ...ofEndpoint, templateId: template.id })
      : calls.call<Endpoint>("POST", "/v1/endpoints", { name, ...fields.endpoint, templateId: template.id }));
    return { endpoint, template, isNew: before === undefined, isReplaced: before?.version !== endpoint.version };
  } catch (error) {
    if (!known) await calls.call("DELETE", `/v1/templates/${template.id}`).catch(() => {});
    throw error;
  }
}

/** An endpoint keeps for ever whether its workers have GPUs or CPUs alone. */
function assertSameKind({ name, computeType }: Endpoint, fields: Fields): void {
  const wanted = fields.computeType ?? (fields.gpuTypeIds === undefined ? computeType : "GPU");
  if (wanted === computeType) return;
  throw new Failure(
    exits.usage,
    `The workers of "${name}" run on ${computeType}s, which cannot be changed: delete it, or deploy under another name.`,
    `millrace deploy --name ${shellWord(`${name}-${String(wanted).toLowerCase()}`)}`,
  );
}
