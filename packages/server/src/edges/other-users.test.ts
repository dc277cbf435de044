import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Scope } from "../domain/access/key.js";
import type { Endpoint } from "../domain/endpoints/endpoint.js";
import type { LiveWorker } from "../memory/registry.js";
import { createSecret } from "../operations/access/save-secret.js";
import { createPod } from "../operations/pods/save-pod.js";
import { createVolume } from "../operations/volumes/save-volume.js";
import { type Answer, type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { pages } from "./dashboard/pages.js";
import { selectionsOf } from "./every-field-fixture.js";
import { schema } from "./graphql/schema/index.js";

/** A text in everything that the admin owns: no reply to another user may contain it. */
const mark = "only-the-admin-sees-this";
/** Routes that anyone may read, with or without a key. */
/** A stream that stays open; its own tests try it with these keys. */
const endless = /\/v1\/events$/;
const openToAll = new Set([
  "/healthz",
  "/readyz",
  "/metrics",
  "/v1/openapi.json",
  "/v2/openapi.json",
  "/sdk/v1/openapi.json",
  "/sdk/v2/openapi.json",
  "/icon.svg",
  ...pages,
]);

let scene: Scene;
let http: Http;
const routes: { method: string; url: string }[] = [];
/** Values for the parameters of routes: the admin's ids, and unknown ids of the same form. */
let ids: Record<string, string>;
const unknown: Record<string, string> = {
  endpointId: "aaaaaaaaaaaaaa",
  templateId: "aaaaaaaaaaaaaa",
  networkVolumeId: "aaaaaaaaaaaaaa",
  containerRegistryAuthId: "aaaaaaaaaaaaaa",
  workerId: "aaaaaaaaaaaaaa",
  podId: "aaaaaaaaaaaaaa",
  jobId: "00000000-0000-7000-8000-000000000000-u1",
  userId: "user_aaaaaaaaaaaaaa",
  keyId: "aaaaaaaaaaaaaa",
  secretId: "aaaaaaaaaaaaaa",
  version: "1",
  deliveryId: "msg_nothing",
  receiverId: "aaaaaaaaaaaaaa",
  gpuTypeId: "nothing",
  cpuFlavorId: "nothing",
  dataCenterId: "nothing",
  absentId: "nothing",
  "*": "v1/models",
};
/** The admin's things, by the names of GraphQL's arguments. */
const given = (name: string) => ({ id: ids.endpointId, templateName: `template ${mark}` })[name] ?? ids[name];
const keys = new Map<string, string>();
let endpoint: Endpoint;
let worker: LiveWorker;

beforeAll(async () => {
  scene = await Scene.open();
  const env = { SECRET: mark };
  const auth = {
    id: scene.parts.ids.resource(),
    ownerNo: scene.admin.ownerNo,
    name: `auth ${mark}`,
    username: "",
    password: "",
  };
  await scene.parts.registry.createRegistryAuth(auth);
  const secret = await createSecret(scene.parts, scene.admin, { name: mark, value: mark, description: mark });
  const volume = await createVolume(scene.parts, scene.admin, {
    name: `volume ${mark}`,
    size: 1,
    dataCenterId: "EU-RO-1",
  });
  const template = await scene.template({ name: `template ${mark}`, env, readme: mark });
  endpoint = await scene.endpoint({
    name: `endpoint ${mark}`,
    env,
    templateId: template.id,
    networkVolumeIds: [volume.id],
  });
  worker = await scene.worker(endpoint);
  const pod = await createPod(scene.parts, scene.admin, {
    name: `pod ${mark}`,
    imageName: "alpine:3",
    env,
    networkVolumeId: volume.id,
  });
  const webhook = `https://example.com/${mark}`;
  await scene.done(worker, await scene.running(endpoint, worker, { input: { mark }, webhook }), { output: mark });
  const [delivery] = await scene.parts.deliveries.list({ endpointNos: [endpoint.no], limit: 1 });
  const receiver = { id: scene.parts.ids.resource(), ownerNo: scene.admin.ownerNo, origin: `https://${mark}` };
  await scene.parts.receivers.note({ ...receiver, at: 1, error: mark }, 10);
  const jobId = await scene.submit(endpoint, { input: { mark } });
  ids = {
    ...unknown,
    endpointId: endpoint.id,
    templateId: template.id,
    networkVolumeId: volume.id,
    containerRegistryAuthId: auth.id,
    workerId: worker.row.id,
    podId: pod.id,
    jobId,
    userId: scene.parts.registry.user(scene.admin.ownerNo)?.id as string,
    keyId: scene.admin.id,
    secretId: secret.id,
    deliveryId: delivery!.webhookId,
    receiverId: receiver.id,
  };
  const stranger = await scene.user({ isAdmin: false });
  const theirs = await scene.addKey("mr_theirs", stranger);
  const own = await scene.endpoint(
    { templateId: (await scene.template({ imageName: "alpine:3" }, theirs)).id },
    theirs,
  );
  const otherOfAdmins = await scene.endpoint();
  const scopes: [string, number, Scope][] = [
    ["another user's", stranger, { kind: "everything" }],
    ["another user's that only reads", stranger, { kind: "readOnly" }],
    ["another user's of an endpoint", stranger, { kind: "endpoints", access: { [own.id]: "run" } }],
    ["another admin's", await scene.user({ isAdmin: true }), { kind: "everything" }],
    [
      "the same user's of another endpoint",
      scene.admin.ownerNo,
      { kind: "endpoints", access: { [otherOfAdmins.id]: "run" } },
    ],
  ];
  for (const [name, ownerNo, scope] of scopes) {
    keys.set(name, `mr_${keys.size}`);
    await scene.addKey(`mr_${keys.size - 1}`, ownerNo, scope);
  }
  keys.set("one that does not exist", "mr_nothing");
  const onRoute = (method: string, url: string) => void routes.push({ method, url });
  http = await openHttp(scene, { rates: undefined, onRoute });
});
afterAll(async () => {
  await http.close();
  await scene.close();
});

/** Bodies that pass the checks of their form, so that a refusal can only be for their owner. */
const bodies: readonly [RegExp, () => unknown][] = [
  [/\/run(sync)?$/, () => ({ input: {} })],
  [/\/apikeys$/, () => ({ name: "k", scope: { endpoints: [{ id: ids.endpointId, access: "run" }] } })],
  [
    /\/v1\/pods$/,
    () => ({
      imageName: "alpine:3",
      networkVolumeId: ids.networkVolumeId,
      containerRegistryAuthId: ids.containerRegistryAuthId,
    }),
  ],
  [/\/endpoints$/, () => ({ name: "stolen", templateId: ids.templateId, networkVolumeId: ids.networkVolumeId })],
  [
    /\/serverless$/,
    () => ({
      name: "stolen",
      type: "QUEUE",
      image: "alpine:3",
      scaling: { type: "REQUEST_COUNT", requestCount: 1 },
      networkVolumes: [ids.networkVolumeId],
      registry: ids.containerRegistryAuthId,
    }),
  ],
  [/v2\/templates$/, () => ({ name: "stolen", image: "alpine:3", registry: ids.containerRegistryAuthId })],
  [/\/network-volumes$/, () => ({ name: "theirs", size: 10, dataCenter: "EU-RO-1" })],
  [/\/ssh-keys$/, () => ({ keys: [] })],
  [/\/registries$/, () => ({ name: "theirs", username: "u", password: "p" })],
  [
    /\/templates$/,
    () => ({ name: "stolen", imageName: "alpine:3", containerRegistryAuthId: ids.containerRegistryAuthId }),
  ],
  [/\/networkvolumes$/, () => ({ name: "theirs", size: 1, dataCenterId: "EU-RO-1" })],
  [/\/containerregistryauth$/, () => ({ name: "theirs", username: "u", password: "p" })],
  [/\/secrets$/, () => ({ name: `secret-${Math.random()}`.replace(".", ""), value: "theirs" })],
  [/\/users$/, () => ({ name: `user ${Math.random()}` })],
];

const filled = (url: string, values: Record<string, string>) =>
  url.replaceAll(/:(\w+)|\*/g, (found, name) => {
    const value = values[name ?? "*"];
    if (value === undefined) throw new Error(`the test knows no value for ${found} in ${url}`);
    return value;
  });

async function call(method: string, url: string, key: string, values: Record<string, string>): Promise<Answer> {
  const body = bodies.find(([path]) => path.test(url))?.[1]() ?? {};
  const query = /stream|sync/.test(url) ? "?wait=0" : "";
  const path = filled(url, values) + (url.endsWith("/runsync") ? "?wait=1000" : query);
  return http.call(method, path, { key, ...(method === "GET" || method === "HEAD" ? {} : { body }) });
}

/** A reply without the ids that the request contained. */
const withoutIds = ({ status, json, text }: Answer, values: Record<string, string>) => {
  const { requestId: _, ...rest } = json ?? {};
  let shown = json === undefined ? text : JSON.stringify(rest);
  for (const value of Object.values(values).sort((one, other) => other.length - one.length))
    shown = shown.replaceAll(value, "…");
  return { status, shown };
};

/** Everything that the admin can see, which no other user may change. */
async function everything(): Promise<unknown> {
  const paths = [
    "endpoints",
    "pods",
    "templates",
    "networkvolumes",
    "containerregistryauth",
    "apikeys",
    "secrets",
    "webhooks/secret",
    "webhooks/receivers",
  ];
  const seen = await Promise.all(paths.map(async (path) => (await http.get(`/v1/${path}`)).json));
  const requests = await http.get(`/v2/${endpoint.id}/requests`);
  return [
    seen.map(withoutUses),
    requests.json.requests.map(({ id, status }: { id: string; status: string }) => [id, status]),
  ];
}
const withoutUses = (seen: unknown) =>
  JSON.parse(JSON.stringify(seen, (name, value) => (name === "lastUsedAt" ? undefined : value)));

const routesOfInterest = () =>
  routes.filter(
    ({ method, url }) =>
      /^(GET|POST|PUT|PATCH|DELETE)$/.test(method) &&
      !openToAll.has(url) &&
      !endless.test(url) &&
      !/^\/(docs|endpoints|assets)(\/|$)/.test(url) && // pages and their files
      !(method === "GET" && /\/graphql\/?$/.test(url)),
  );

describe("No key but the admin's own", () => {
  it("finds a route missing here", () => {
    const urls = new Set(routesOfInterest().map(({ url }) => url));
    expect(urls.size).toBeGreaterThan(60);
    for (const url of ["/v1/users/:userId", "/sdk/v2/:endpointId/stream/:jobId", "/v2/:endpointId/openai/*"])
      expect(urls).toContain(url);
  });

  it("sees, uses, counts or guesses anything of the admin's over any route", async () => {
    const before = await everything();
    for (const [name, key] of keys) {
      for (const { method, url } of routesOfInterest()) {
        const what = `${method} ${url} with a key that is ${name}`;
        const got = await call(method, url, key, ids);
        expect(got.text, what).not.toContain(mark);
        if (key === "mr_nothing") expect(got.status, what).toBe(401);
        if (!/[:*]/.test(url.replace(":version", ""))) continue;
        // Admins see users and keys, but not the resources of these users.
        const isForAdmins = name === "another admin's" && /:(userId|keyId)/.test(url);
        if (!isForAdmins || method !== "GET") expect(got.status, what).toBeGreaterThanOrEqual(400);
        if (isForAdmins) continue;
        const guessed = await call(method, url, key, unknown);
        expect(withoutIds(got, ids), what).toEqual(withoutIds(guessed, unknown));
      }
    }
    expect(await everything()).toEqual(before);
  });

  it("sees, uses, counts or guesses anything of the admin's over any field of GraphQL", async () => {
    const before = await everything();
    const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
    for (const [name, key] of keys) {
      for (const [kind, type] of [
        ["query", query],
        ["mutation", mutation],
      ] as const) {
        for (const field of Object.values(type?.getFields() ?? {})) {
          for (const selected of selectionsOf(kind, field, given)) {
            const text = `${kind} { ${selected} }`;
            const got = await http.post("/graphql", { query: text }, { key });
            const what = `${text} with a key that is ${name}: ${got.text}`;
            expect(got.text.replaceAll(`named 'template ${mark}'`, ""), what).not.toContain(mark);
            if (key === "mr_nothing") expect(got.status, what).toBe(401);
            else expect([200, 401], what).toContain(got.status);
            if (kind === "mutation" && !got.json.errors) expect(got.text, what).not.toContain(ids.endpointId);
          }
        }
      }
    }
    expect(await everything()).toEqual(before);
  });

  it("can act as a worker of the admin's", async () => {
    const paths = routes.filter(({ url }) => /^\/v2\/:endpointId\/.*:workerId/.test(url));
    expect(paths.length).toBeGreaterThan(4);
    for (const { method, url } of paths) {
      for (const key of keys.values()) expect((await call(method, url, key, ids)).status, `${method} ${url}`).toBe(401);
    }
  });
});
