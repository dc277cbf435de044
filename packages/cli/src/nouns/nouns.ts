import type { Endpoint } from "@millrace/api";
import { ago, span } from "@millrace/api/words";
import { shellWord } from "../called.js";
import type { Calls } from "../calls.js";
import type { Fields } from "../fields.js";
import type { Column } from "../output/table.js";
import { changeRegistry } from "./change-registry.js";
import type { Choice, Given } from "./choices.js";
import { endpoints, fillEndpoints } from "./endpoints.js";
import { keyColumns } from "./key-columns.js";
import type { References } from "./references.js";
import type { Kind, Resource } from "./resources.js";

/** A kind of resource with its commands. */
export interface Noun extends Kind {
  readonly about: string;
  readonly columns: readonly Column<Resource>[];
  /** What its examples call one. */
  readonly called: string;
  /** What people may write for one, unless it is its name or id. */
  readonly given?: string;
  /** What fills an empty list, if that is not its `create`. */
  readonly fill?: string;
  /** An example of the fields of a new one, besides its name; absent if none can be created by hand. */
  readonly create?: string;
  /** Fields of a new one unless the caller gives others. */
  readonly defaults?: Fields;
  /** An example of changed fields; absent if one never changes. */
  readonly update?: string;
  /** Changes one, if that is not a PATCH. */
  readonly change?: (calls: Calls, resource: Resource, fields: Fields) => Promise<Resource>;
  /** What people may try although it cannot be done: why not, and what does what they want. */
  readonly instead?: Readonly<Record<string, readonly [why: string, hint: string]>>;
  /** What is lost with one, given the options as they were written; absent if none can be deleted. */
  readonly loss?: (resource: Resource, given: Given) => string;
  /** Deletes one, if that is more than one call. */
  readonly remove?: (calls: Calls, resource: Resource) => Promise<void>;
  /** Fields that hold ids of other things, for which names may be given. */
  readonly references?: References;
  /** What people do with a new one: commands, or where it is. */
  readonly next?: (resource: Resource, url: string) => readonly string[];
  /** Other things to do with one, each a POST to a path below it. */
  readonly actions?: Readonly<Record<string, string>>;
  /** What is said after an action that had nothing to change. */
  readonly unchanged?: (before: Resource, after: Resource) => string | undefined;
  /** Options of `list`, `delete` and actions. */
  readonly choices?: Readonly<Record<string, readonly Choice[]>>;
}

const field =
  (name: string): Column<Resource>["of"] =>
  (resource) => {
    const value = resource[name];
    return typeof value === "number" || value === undefined || value === null ? (value ?? undefined) : String(value);
  };
const column = (title: string, name = title): Column<Resource> => ({ title, of: field(name) });
const when = (title: string, name: string): Column<Resource> => ({
  title,
  of: (resource) => ago(resource[name] as string | undefined),
});
const id = column("id");
const name = column("name");

/** A receiver's state, with its time. */
const stateOfReceiver = ({ pausedAt, failingSince, state }: Resource): string => {
  if (state === "paused") return `paused ${ago(String(pausedAt))}`;
  return state === "failing" ? `failing for ${span(Date.now() - Date.parse(String(failingSince)))}` : String(state);
};

const runsOn = ({ computeType, gpuCount, gpuTypeIds }: Endpoint): string =>
  computeType === "CPU"
    ? "CPU"
    : `${gpuCount} × ${gpuTypeIds && gpuTypeIds.length > 0 ? gpuTypeIds.join(" or ") : "any GPU"}`;
const ofEndpoint = (title: string, of: (endpoint: Endpoint) => string | number | undefined): Column<Resource> => ({
  title,
  of: (resource) => of(resource as unknown as Endpoint),
});

/** An object's fields in a cell. */
const pairs = (fields: object): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");

/** A resource's name as a word of a command. */
export const word = ({ name, id }: Resource): string => shellWord(name ?? id);

const templates: Kind = { noun: "template", path: "/v1/templates" };
const volumes: Kind = { noun: "volume", path: "/v1/networkvolumes" };
const registries: Kind = { noun: "registry", path: "/v1/containerregistryauth" };
export const users: Kind = { noun: "user", path: "/v1/users" };
export const keys: Kind = { noun: "key", path: "/v1/apikeys", othersById: true };

const fillReceivers = `millrace run ENDPOINT '{…}' --webhook https://app.example/hook`;

/** What a server keeps and people manage. */
export const nouns: readonly Noun[] = [
  {
    ...endpoints,
    about: "Endpoints: what jobs are sent to.",
    columns: [
      name,
      id,
      ofEndpoint("for", ({ type }) => (type === "LB" ? "requests" : "jobs")),
      ofEndpoint("workers", ({ workersMin, workersMax }) => `${workersMin}–${workersMax}`),
      ofEndpoint("runs on", runsOn),
      column("version"),
    ],
    called: "mill",
    fill: fillEndpoints,
    create: "templateId=shout workersMax=3",
    references: { templateId: templates, networkVolumeId: volumes, networkVolumeIds: volumes },
    next: ({ id, name = id, type }, url) =>
      type === "LB"
        ? [`${url}/lb/${id}`]
        : [`millrace run ${shellWord(name)} '{"text":"hello"}'`, `${url}/v2/${id}/run`],
    update: "workersMax=5 idleTimeout=60",
    loss: () => "its jobs that wait are cancelled, and its workers end",
    remove: async (calls, { id }) => {
      await calls.call("PATCH", `/v1/endpoints/${id}`, { workersMin: 0, workersMax: 0 });
      await calls.call("DELETE", `/v1/endpoints/${id}`);
    },
    actions: { restart: "Replace all workers by new ones; idle ones at once, busy ones after their job." },
  },
  {
    ...templates,
    about: "Templates: what workers are made of.",
    columns: [name, id, column("image", "imageName"), column("disk GB", "containerDiskInGb")],
    called: "mill-image",
    create: "imageName=registry.example/mill:1 env.LEVEL=info",
    defaults: { isServerless: true },
    references: { containerRegistryAuthId: registries },
    next: (template) => [`millrace endpoint create name=${word(template)} templateId=${word(template)}`],
    update: "env.LEVEL=debug",
    loss: () => "no endpoint may use it any more",
  },
  {
    ...volumes,
    about: "Network volumes: directories that workers share.",
    columns: [name, id, column("GB", "size"), column("data center", "dataCenterId")],
    called: "models",
    create: "size=100 dataCenterId=EU-RO-1",
    next: (volume) => [`millrace endpoint update ENDPOINT networkVolumeId=${word(volume)}`],
    update: "size=200",
    loss: () => "everything in it is deleted",
  },
  {
    noun: "pod",
    path: "/v1/pods",
    about: "Pods: containers that stay.",
    columns: [name, id, column("wanted", "desiredStatus"), column("state", "status"), column("image")],
    called: "notebook",
    create: "imageName=jupyter/base-notebook gpuCount=1",
    references: { templateId: templates, networkVolumeId: volumes, containerRegistryAuthId: registries },
    next: (pod) => [`millrace pod get ${word(pod)}`],
    update: "env.TOKEN=@token.txt",
    loss: () => "its container and its own volume are deleted",
    actions: {
      stop: "Stop a pod; its volume is kept.",
      start: "Start a stopped pod.",
      restart: "Restart a pod's container.",
      reset: "Make a pod's container anew; its volume is kept.",
    },
  },
  {
    noun: "secret",
    path: "/v1/secrets",
    about: "Secrets: values for env, as {{ RUNPOD_SECRET_name }}.",
    columns: [name, column("description"), when("made", "createdAt")],
    called: "hf",
    create: "value=@token.txt description='Hugging Face'",
    next: ({ name }) => [`millrace endpoint update ENDPOINT env.TOKEN='{{ RUNPOD_SECRET_${name} }}'`],
    update: "value=@token.txt",
    loss: () => "workers whose env names it do not start any more",
  },
  {
    ...registries,
    about: "Credentials for container registries.",
    columns: [name, id],
    called: "private",
    create: "username=me password=@token.txt",
    next: (registry) => [`millrace template update TEMPLATE containerRegistryAuthId=${word(registry)}`],
    update: "username=me password=@token.txt",
    change: changeRegistry,
    loss: () => "images that need it can no longer be pulled",
  },
  {
    ...keys,
    about: "API keys.",
    columns: keyColumns,
    called: "ci",
    create: "scope=read",
    references: { userId: users, "scope.endpoints.id": endpoints },
    next: (_, url) => [`MILLRACE_API_KEY=KEY millrace context add NAME --url ${url}`],
    update: "scope=all",
    loss: () => "whoever uses it is refused from now on",
    actions: { rotate: "Make a new text for a key; the old one works for a while longer." },
    choices: {
      list: [
        { flags: "--user <user>", about: "another user's (for admins): its name or id", field: "userId", of: users },
      ],
      rotate: [
        {
          flags: "--overlap <seconds>",
          about: "how long the old text still works: a day unless given, 0 ends it at once",
          field: "overlapSeconds",
        },
      ],
    },
  },
  {
    ...users,
    about: "Users (for admins).",
    columns: [
      name,
      id,
      column("role"),
      column("may spend an hour", "spendLimit"),
      when("made", "createdAt"),
      { title: "quotas", of: ({ quotas = {} }) => pairs(quotas as object) },
    ],
    called: "research",
    create: "role=member quotas.workers=4",
    next: (user) => [`millrace key create name=${word(user)} userId=${word(user)}`],
    update: "spendLimit=2.5",
    loss: (_, { transferTo, deleteResources }) => {
      if (transferTo) return `its keys stop working, and what it owns goes to the user ${transferTo}`;
      if (deleteResources) return "its keys stop working, and all that it owns is deleted, files of volumes included";
      return "its keys stop working; a user that owns anything is not deleted";
    },
    choices: {
      delete: [
        { flags: "--transfer-to <user>", about: "who gets what it owns: a name or id", field: "transferTo", of: users },
        {
          flags: "--delete-resources",
          about: "delete what it owns, files of volumes included",
          field: "deleteResources",
        },
      ],
    },
  },
  {
    noun: "webhook",
    word: "receiver",
    path: "/v1/webhooks/receivers",
    nameOf: ({ origin }) => String(origin),
    nameIn: (given) => (/^https?:/i.test(given) && URL.canParse(given) ? new URL(given).origin : given),
    missing: (name) =>
      URL.canParse(name) ? `There is no receiver "${name}" yet: nothing was sent there in the last week.` : undefined,
    pageAfter: ({ origin }) => `after=${encodeURIComponent(String(origin))}`,
    about: "Where webhooks go, and whether they arrive.",
    columns: [
      column("to", "origin"),
      id,
      { title: "state", of: stateOfReceiver },
      column("failures in a row", "failures"),
      column("held"),
      column("last error", "lastError"),
    ],
    called: "https://app.example",
    given: "its URL, as in --webhook or without its path; or its id",
    fill: fillReceivers,
    instead: {
      create: ["A webhook is part of a job, which names where its result goes.", fillReceivers],
      update: ["A webhook is part of a job, which names where its result goes.", fillReceivers],
      delete: [
        "A receiver is forgotten by itself a week after its last delivery; until then its deliveries can be held back.",
        "millrace webhook pause https://app.example",
      ],
    },
    actions: { pause: "Hold a receiver's deliveries back.", resume: "Send what was held back." },
    unchanged: (before, { pausedAt }) => {
      if (before.pausedAt !== pausedAt) return undefined;
      return `It was ${pausedAt === undefined ? "not paused" : "paused already"}: nothing has changed.`;
    },
  },
];
