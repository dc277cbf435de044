import type { Stores } from "../../store/index.js";
import { accessStore } from "./access.js";
import { audited, auditStore } from "./audit.js";
import { decisionStore } from "./decisions.js";
import { deliveryStore } from "./deliveries.js";
import { endpointStore } from "./endpoints.js";
import { receiverStore } from "./receivers.js";
import { registryAuthStore, templateStore, volumeStore } from "./resources.js";
import type { Runner } from "./runner.js";
import { secretStore } from "./secrets.js";
import { usageStore } from "./usage.js";
import { hostStore, workerStore } from "./workers.js";

/** The stores of the cool tables, the same code for both databases; `newRunner` is called for each of them. */
export function tableStores(
  newRunner: () => Runner,
): Pick<
  Stores,
  | "endpoints"
  | "templates"
  | "volumes"
  | "registryAuths"
  | "workers"
  | "access"
  | "secrets"
  | "audit"
  | "decisions"
  | "deliveries"
  | "hosts"
  | "usage"
  | "receivers"
> {
  const runner = () => audited(newRunner());
  return {
    endpoints: endpointStore(runner()),
    templates: templateStore(runner()),
    volumes: volumeStore(runner()),
    registryAuths: registryAuthStore(runner()),
    workers: workerStore(runner()),
    access: accessStore(runner()),
    secrets: secretStore(runner()),
    audit: auditStore(runner()),
    decisions: decisionStore(runner()),
    deliveries: deliveryStore(runner()),
    hosts: hostStore(runner()),
    usage: usageStore(runner()),
    receivers: receiverStore(runner()),
  };
}
