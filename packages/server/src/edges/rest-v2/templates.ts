import { v2 } from "@millrace/api";
import type { FastifyInstance, FastifyRequest } from "fastify";
import Type from "typebox";
import type { ApiKey } from "../../domain/access/key.js";
import type { Template } from "../../domain/endpoints/template.js";
import { Refusal } from "../../errors.js";
import { publicTemplates, visibleTemplates } from "../../operations/access/visible.js";
import type { Parts } from "../../operations/needs.js";
import {
  createTemplate,
  deleteTemplate,
  ownTemplate,
  type TemplateInput,
  updateTemplate,
} from "../../operations/templates/save-template.js";
import { idOf } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { containerInput, containerView } from "./endpoint-shape.js";
import { route } from "./route-schema.js";

const tag = "templates";
const one = { tag, names: ["templateId"] };

/** Templates: the routes that take a body. */
export function templateWrites(app: FastifyInstance, parts: Parts): void {
  app.post(
    "/templates",
    route({
      operationId: "createTemplate",
      summary: "Create a template",
      tag,
      body: v2.TemplateCreate,
      reply: v2.Template,
      status: 201,
    }),
    async (request, reply) => {
      const template = await createTemplate(parts, request.caller, templateInput(request.body as v2.TemplateCreate));
      return reply.code(201).send(templateView(request.caller, template));
    },
  );
  app.patch(
    "/templates/:templateId",
    route({
      ...one,
      operationId: "updateTemplate",
      summary: "Change a template; only the fields sent change",
      body: v2.TemplateUpdate,
      reply: v2.Template,
    }),
    async (request) => {
      const input = templateInput(request.body as v2.TemplateUpdate);
      return templateView(request.caller, await updateTemplate(parts, request.caller, own(parts, request), input));
    },
  );
}

/** Templates: the routes without a body. */
export function templateReads(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/templates",
    route({ operationId: "listTemplates", summary: "List templates", tag, reply: v2.Templates }),
    ({ caller }, reply) =>
      sendList(reply, visibleTemplates(parts, caller), (template) => templateView(caller, template), "templates"),
  );
  app.get(
    "/templates/:templateId",
    route({ ...one, operationId: "getTemplate", summary: "Show a template", reply: v2.Template }),
    async (request) => templateView(request.caller, own(parts, request)),
  );
  app.delete(
    "/templates/:templateId",
    route({ ...one, operationId: "deleteTemplate", summary: "Delete a template that no endpoint uses" }),
    async (request, reply) => {
      await deleteTemplate(parts, request.caller, own(parts, request));
      return reply.code(204).send();
    },
  );
}

/** Templates that other users share with everybody; none of them is the hosted service's. */
export function publicTemplateReads(app: FastifyInstance, parts: Parts): void {
  const all = (caller: ApiKey) => publicTemplates(parts, caller);
  app.get(
    "/catalog/templates",
    route({
      operationId: "listPublicTemplates",
      summary: "List public templates",
      tag: "catalog",
      querystring: Type.Object({
        source: Type.Optional(
          Type.String({ description: "official and verified: none; community, or absent: all that users share." }),
        ),
      }),
      reply: v2.Templates,
    }),
    async ({ caller, query }, reply) => {
      const { source } = query as { source?: string };
      const found = source === "official" || source === "verified" ? [] : all(caller);
      return sendList(reply, found, (template) => templateView(caller, template), "templates");
    },
  );
  app.get(
    "/catalog/templates/:templateId",
    route({
      ...one,
      tag: "catalog",
      operationId: "getPublicTemplate",
      summary: "Show a public template",
      reply: v2.Template,
    }),
    async (request) => {
      const id = idOf(request, "templateId");
      const template = all(request.caller).find((each) => each.id === id);
      if (!template) throw new Refusal("NOT_FOUND", `There is no public template '${id.slice(0, 80)}'.`);
      return templateView(request.caller, template);
    },
  );
}

const own = (parts: Parts, request: FastifyRequest) => ownTemplate(parts, request.caller, idOf(request, "templateId"));

function templateInput(body: v2.TemplateCreate | v2.TemplateUpdate): TemplateInput {
  const { name, mounts, serverless, public: isPublic, category } = body;
  const { persistent } = mounts ?? {};
  return {
    ...containerInput(body),
    ...(name === undefined ? {} : { name }),
    ...(persistent ? { volumeInGb: persistent.size, volumeMountPath: persistent.path } : {}),
    ...(serverless === undefined ? {} : { isServerless: serverless }),
    ...(isPublic === undefined ? {} : { isPublic }),
    ...(category === undefined ? {} : { category }),
  };
}

function templateView(caller: ApiKey, template: Template): v2.Template {
  const { id, settings } = template;
  const { volumeInGb: size, volumeMountPath: path } = settings;
  return {
    id,
    name: settings.name,
    ...containerView(caller, template, settings),
    mounts: size > 0 ? { persistent: { size, path } } : {},
    serverless: settings.isServerless,
    public: settings.isPublic,
    category: settings.category,
  };
}
