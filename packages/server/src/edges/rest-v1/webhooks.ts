import * as api from "@millrace/api";
import type { FastifyInstance } from "fastify";
import Type from "typebox";
import { Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import type { Parts } from "../../operations/needs.js";
import {
  type DeliveriesAsked,
  deliveriesOf,
  ownDelivery,
  redeliver,
  showDelivery,
  showWholeDelivery,
} from "../../operations/webhooks/deliveries.js";
import { ownReceiver, receiversOf, showReceivers, turnReceiver } from "../../operations/webhooks/receivers.js";
import { idOf, params } from "../shared/params.js";
import { sendList } from "../shared/replies/send-list.js";
import { doc } from "./route-schema.js";

type Query = Readonly<Record<string, string | undefined>>;

const tag = "webhooks";
const text = (description: string) => Type.Optional(Type.String({ description }));
const query = Type.Object({
  jobId: text("Only deliveries of this job."),
  endpointId: text("Only deliveries of this endpoint's jobs."),
  state: text("Only deliveries in this state: pending, held (by a paused receiver), delivered or failed."),
  before: text("The id of a delivery, such as the last one of the page before: only older ones."),
  limit: text(`How many deliveries, 1 to ${limits.deliveriesShown}, which is the default.`),
});
const one = "/webhooks/deliveries/:deliveryId";
const named = { params: params("deliveryId") };

/** Webhook deliveries, and the secret that signs them. */
export function webhookRoutes(app: FastifyInstance, parts: Parts): void {
  app.get(
    "/webhooks/deliveries",
    doc("Webhook deliveries with their attempts, newest first", tag, Type.Array(api.WebhookDelivery), {
      querystring: query,
    }),
    async (request, reply) =>
      sendList(reply, await deliveriesOf(parts, request.caller, request.query as DeliveriesAsked), showDelivery),
  );
  app.get(one, doc("Show a webhook delivery with its attempts", tag, api.WebhookDelivery, named), async (request) =>
    showWholeDelivery(await ownDelivery(parts, request.caller, idOf(request, "deliveryId"))),
  );
  app.post(
    `${one}/redeliver`,
    doc("Send a webhook delivery once more, under the same id", tag, api.WebhookDelivery, named),
    async (request) => showWholeDelivery(await redeliver(parts, request.caller, idOf(request, "deliveryId"))),
  );
  receiverRoutes(app, parts);
  app.get(
    "/webhooks/secret",
    doc("The secret that signs your webhooks", tag, Type.Object({ secret: Type.String() })),
    async (request) => {
      if (request.caller.scope.kind !== "everything")
        throw new Refusal("UNAUTHORIZED", "This key may not read the webhook secret.");
      return { secret: parts.vault.open(parts.registry.user(request.caller.ownerNo)?.webhookSecret ?? "") };
    },
  );
}

/** Where webhooks go, and pauses of it. */
function receiverRoutes(app: FastifyInstance, parts: Parts): void {
  const whole = "/webhooks/receivers/:receiverId";
  const ofOne = { params: params("receiverId") };
  const shown = async (receiver: Awaited<ReturnType<typeof ownReceiver>>) =>
    (await showReceivers(parts, [receiver]))[0];
  app.get(
    "/webhooks/receivers",
    doc("Where your webhooks go, by scheme, host and port", tag, Type.Array(api.WebhookReceiver), {
      querystring: Type.Object({
        after: Type.Optional(
          Type.String({
            maxLength: 300,
            pattern: "^https?://[^/?#]+$",
            title: "the origin of a receiver, such as https://example.com",
            description: "The origin of a receiver, such as the last one of the page before: only later ones.",
          }),
        ),
        state: text("Only receivers in this state: healthy, failing or paused."),
        limit: text(`How many receivers, 1 to ${limits.receiversShown}, which is the default.`),
      }),
    }),
    async (request, reply) =>
      sendList(reply, await receiversOf(parts, request.caller, request.query as Query), (receiver) => receiver),
  );
  app.get(whole, doc("Show a webhook receiver", tag, api.WebhookReceiver, ofOne), async (request) =>
    shown(await ownReceiver(parts, request.caller, idOf(request, "receiverId"))),
  );
  for (const [to, summary] of [
    ["pause", "Hold back all deliveries to a receiver"],
    ["resume", "Send what was held back for a receiver, and all that comes"],
  ] as const)
    app.post(`${whole}/${to}`, doc(summary, tag, api.WebhookReceiver, ofOne), async (request) =>
      shown(await turnReceiver(parts, request.caller, idOf(request, "receiverId"), to)),
    );
}
