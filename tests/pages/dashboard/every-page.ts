import { until } from "../../harness.js";
import { type Dashboard, useDashboard } from "./visit.js";

/** The ids in the paths of pages. */
export interface Ids {
  readonly endpoint: string;
  readonly job: string;
  readonly failed: string;
  readonly worker: string;
  readonly template: string;
  readonly delivery: string;
}

/** A page of the dashboard, and how to recognise each of its states. */
export interface PageCase {
  readonly name: string;
  readonly path: (ids: Ids) => string;
  /** A text that only the loaded page shows, on a server that has something of everything. */
  readonly full: string | RegExp;
  /** What it says on a server that has nothing. Absent if there is always something to show. */
  readonly empty?: string;
  /** The request without which it has nothing to show. */
  readonly reads: RegExp;
  /** Absent if the page shows a form that needs nothing of the reply. */
  readonly isInstant?: boolean;
}

const ofEndpoint = (tab: string) => (ids: Ids) => `/endpoints/${ids.endpoint}${tab}`;

export const endpointPages: readonly PageCase[] = [
  {
    name: "Requests",
    path: ofEndpoint(""),
    full: /^\d+ shown/,
    empty: "No request yet",
    reads: /\/v2\/\w+\/requests\?/,
  },
  {
    name: "Workers",
    path: ofEndpoint("/workers"),
    full: "Choose a worker to see how it started",
    empty: "The first job starts one.",
    reads: /\/v1\/endpoints\/\w+\/workers\?/,
  },
  {
    name: "Logs",
    path: ofEndpoint("/logs"),
    full: "the handler was called",
    empty: "What the handler prints appears here",
    reads: /\/v1\/endpoints\/\w+\/logs\?/,
  },
  {
    name: "Scaling",
    path: ofEndpoint("/scaling"),
    full: "Point at the chart",
    empty: "nothing waits",
    reads: /\/v1\/endpoints\/\w+\/scaling$/,
  },
  {
    name: "Metrics",
    path: ofEndpoint("/metrics"),
    full: /jobs that are still kept/,
    empty: "None of the newest jobs that are still kept",
    reads: /\/v1\/endpoints\/\w+\/timings$/,
  },
  {
    name: "Releases",
    path: ofEndpoint("/releases"),
    full: "What version 2 changed",
    empty: "Version 1, the first that is kept",
    reads: /\/v1\/endpoints\/\w+\/releases$/,
  },
  {
    name: "Settings",
    path: ofEndpoint("/settings"),
    full: "executionTimeoutMs",
    reads: /\/v1\/endpoints\/\w+\?includeTemplate/,
  },
  {
    name: "Try it",
    path: ofEndpoint("/try"),
    full: "Input, a JSON object",
    reads: /\/v1\/endpoints\/\w+\?includeTemplate/,
    isInstant: true,
  },
];

export const mainPages: readonly PageCase[] = [
  {
    name: "Overview",
    path: () => "/",
    full: "Needs attention",
    empty: "An endpoint takes jobs over HTTP and starts workers for them.",
    reads: /\/v1\/endpoints\?includeHealth/,
  },
  {
    name: "New endpoint",
    path: () => "/endpoints/new",
    full: "unless you choose one below.",
    empty: "A container image, or a folder on the server's machine",
    reads: /\/v1\/templates\?/,
  },
  {
    name: "Templates",
    path: () => "/templates",
    full: "seeded-template",
    empty: "A template says what workers are made of",
    reads: /\/v1\/templates$/,
  },
  {
    name: "Volumes",
    path: () => "/volumes",
    full: "seeded-volume",
    empty: "A volume is a directory",
    reads: /\/v1\/networkvolumes$/,
  },
  {
    name: "Pods",
    path: () => "/pods",
    full: "A pod is a container",
    empty: "A pod is a container",
    reads: /\/v1\/pods$/,
  },
  {
    name: "Secrets",
    path: () => "/secrets",
    full: "SEEDED_SECRET",
    empty: "A secret is a value",
    reads: /\/v1\/secrets$/,
  },
  {
    name: "Registries",
    path: () => "/registries",
    full: "seeded-registry",
    empty: "Credentials for private images.",
    reads: /\/v1\/containerregistryauth$/,
  },
  { name: "API keys", path: () => "/keys", full: "seeded-key", reads: /\/v1\/apikeys$/ },
  { name: "Users", path: () => "/users", full: "Seeded team", reads: /\/v1\/users$/ },
  {
    name: "Webhooks",
    path: () => "/webhooks",
    full: "http://127.0.0.1:9/hook",
    empty: 'a job that is submitted with "webhook" makes one.',
    reads: /\/v1\/webhooks\/deliveries\?/,
  },
  {
    name: "Usage",
    path: () => "/usage",
    full: "Ran for",
    empty: "No workers ran in this time.",
    reads: /\/v1\/billing\/endpoints\?/,
  },
  { name: "Hosts", path: () => "/hosts", full: "GB of memory", reads: /\/v1\/hosts$/ },
  { name: "Audit", path: () => "/audit", full: "127.0.0.1", reads: /\/v1\/audit\?/ },
];

export const jobPage: PageCase = {
  name: "Job",
  path: ({ endpoint, job }) => `/endpoints/${endpoint}/jobs/${job}`,
  full: "time limit",
  reads: /\/v2\/\w+\/status\//,
};

export const everyPage: readonly PageCase[] = [...mainPages, ...endpointPages, jobPage];

const handler = `
export default async (input, job) => {
  console.log("the handler was called");
  if (input.fail) throw new TypeError(input.fail);
  return { shouted: String(input.text).toUpperCase() };
};
`;

/** Starts a server for {@link seed}, whose callers are not limited and whose usage is written soon. */
export const useSeededDashboard = (): Dashboard =>
  useDashboard({ MILLRACE_RATE_LIMITS: "off" }, { usageTickMs: 500, netMs: 250 });

/** Gives the server something of everything; resolves when its jobs have ended, its webhook has failed, and it has used something. */
export async function seed(dashboard: Dashboard): Promise<Ids> {
  const { api } = dashboard;
  const imageName = dashboard.handler(handler);
  const template = await api("POST", "/v1/templates", { name: "seeded-template", imageName, isServerless: true });
  const made = { templateId: template.id, workersMax: 2, idleTimeout: 600 };
  const { id: endpoint } = await api("POST", "/v1/endpoints", { name: "seeded-endpoint", ...made });
  const idle = await api("POST", "/v1/endpoints", { name: "without-workers", templateId: template.id, workersMax: 0 });
  await api("POST", "/v1/secrets", { name: "SEEDED_SECRET", value: "12345678", description: "for a test" });
  await api("POST", "/v1/networkvolumes", { name: "seeded-volume", size: 1, dataCenterId: "EU-RO-1" });
  await api("POST", "/v1/containerregistryauth", { name: "seeded-registry", username: "u", password: "p" });
  await api("POST", "/v1/users", { name: "Seeded team", role: "member" });
  await api("POST", "/v1/apikeys", { name: "seeded-key", scope: "read" });

  const job = await api("POST", `/v2/${endpoint}/run`, { input: { text: "hello" } });
  const failed = await api("POST", `/v2/${endpoint}/run`, {
    input: { fail: "no such word" },
    webhook: "http://127.0.0.1:9/hook",
  });
  await api("POST", `/v2/${idle.id}/run`, { input: {} });
  await until(async () => (await api("GET", `/v2/${endpoint}/status/${job.id}`)).status === "COMPLETED", 60_000);
  const delivery = await until(async () => {
    const [first] = await api("GET", `/v1/webhooks/deliveries?jobId=${failed.id}`);
    return first?.attempts.length > 0 && first;
  }, 60_000);
  const [worker] = await api("GET", `/v1/endpoints/${endpoint}/workers?ended=true`);
  await until(async () => (await api("GET", "/v1/billing/endpoints")).length > 0, 60_000);
  await api("PATCH", `/v1/endpoints/${endpoint}`, { env: { COLOR: "blue" } });
  return {
    endpoint,
    job: job.id,
    failed: failed.id,
    worker: worker.id,
    template: template.id,
    delivery: delivery.id,
  };
}
