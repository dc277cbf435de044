import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { createSecret } from "../operations/access/save-secret.js";
import { createPod } from "../operations/pods/save-pod.js";
import { createVolume } from "../operations/volumes/save-volume.js";
import { type Answer, type Http, openHttp } from "../testing/http-fixture.js";
import { Scene } from "../testing/scene-fixture.js";
import { pages } from "./dashboard/pages.js";

/** A text in everything that the admin owns. */
export const mark = "only-the-admin-sees-this";
/** The value of the admin's environment variables. */
export const valueOfEnv = `the value ${mark}`;

/** Routes that anyone may read, with or without a key. */
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

/** A stream that stays open; its own tests try it with every kind of key. */
const endless = /\/v1\/events$/;

/** Routes that may hold a request until something happens, which needs time. */
const mayHold = /\/(runsync|status-sync|stream|openai|logs)(\/|$)/;

const isOfInterest = ({ method, url }: Route) =>
  /^(GET|POST|PUT|PATCH|DELETE)$/.test(method) &&
  !openToAll.has(url) &&
  !endless.test(url) &&
  !/^\/(docs|endpoints|assets)(\/|$)/.test(url) && // pages and their files
  !(method === "GET" && /\/graphql\/?$/.test(url));

/** Unknown ids, of the form that the admin's have. */
const unknown: Ids = {
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

/** Bodies that pass the checks of their form, so that a refusal can only be for the key or the owner. */
const bodies: readonly [RegExp, (ids: Ids) => unknown][] = [
  [/\/run(sync)?$/, () => ({ input: {} })],
  [/\/apikeys$/, (ids) => ({ name: "k", scope: { endpoints: [{ id: ids.endpointId, access: "run" }] } })],
  [
    /\/v1\/pods$/,
    ({ networkVolumeId, containerRegistryAuthId }) => ({
      imageName: "alpine:3",
      networkVolumeId,
      containerRegistryAuthId,
    }),
  ],
  [/\/endpoints$/, ({ templateId, networkVolumeId }) => ({ name: "stolen", templateId, networkVolumeId })],
  [
    /\/serverless$/,
    (ids) => ({
      name: "stolen",
      type: "QUEUE",
      image: "alpine:3",
      scaling: { type: "REQUEST_COUNT", requestCount: 1 },
      networkVolumes: [ids.networkVolumeId],
      registry: ids.containerRegistryAuthId,
    }),
  ],
  [/v2\/templates$/, (ids) => ({ name: "stolen", image: "alpine:3", registry: ids.containerRegistryAuthId })],
  [/\/network-volumes$/, () => ({ name: "theirs", size: 10, dataCenter: "EU-RO-1" })],
  [/\/ssh-keys$/, () => ({ keys: [] })],
  [/\/registries$/, () => ({ name: "theirs", username: "u", password: "p" })],
  [
    /\/templates$/,
    ({ containerRegistryAuthId }) => ({ name: "stolen", imageName: "alpine:3", containerRegistryAuthId }),
  ],
  [/\/networkvolumes$/, () => ({ name: "theirs", size: 1, dataCenterId: "EU-RO-1" })],
  [/\/containerregistryauth$/, () => ({ name: "theirs", username: "u", password: "p" })],
  [/\/secrets$/, () => ({ name: `secret-${Math.random()}`.replace(".", ""), value: "theirs" })],
  [/\/users$/, () => ({ name: `user ${Math.random()}` })],
];

type Ids = Readonly<Record<string, string>>;
export interface Route {
  readonly method: string;
  readonly url: string;
}

/** Every route of every API, over a scene in which an admin owns one of each kind of resource. */
export async function openEveryRoute() {
  const scene = await Scene.open();
  const { endpoint, ids } = await fill(scene);
  const registered: Route[] = [];
  const onRoute = (method: string, url: string) => void registered.push({ method, url });
  const http = await openHttp(scene, { rates: undefined, onRoute });
  const call = ({ method, url }: Route, key: string, values: Ids, signal?: AbortSignal): Promise<Answer> => {
    const body = bodies.find(([path]) => path.test(url))?.[1](ids) ?? {};
    const query = /stream|sync/.test(url) ? "?wait=0" : "";
    const path = filled(url, values) + (url.endsWith("/runsync") ? "?wait=1000" : query);
    return http.call(method, path, { key, ...(method === "GET" ? {} : { body }), ...(signal ? { signal } : {}) });
  };
  return {
    scene,
    http,
    endpoint,
    /** Values for the parameters of routes: the admin's ids, and unknown ones of the same form. */
    ids,
    unknown,
    routes: registered.filter(isOfInterest),
    /** The admin's things, by the names of GraphQL's arguments. */
    given: (name: string) => ({ id: ids.endpointId, templateName: `template ${mark}` })[name] ?? ids[name],
    /** Calls a route with these values for its parameters. */
    call,
    /** Like `call`, for a key that the route may admit: undefined if it holds the request, which then leaves. */
    async callBriefly(route: Route, key: string, values: Ids): Promise<Answer | undefined> {
      if (!mayHold.test(route.url)) return call(route, key, values);
      const leaving = new AbortController();
      let answer: Answer | undefined;
      let isOver = false;
      const called = call(route, key, values, leaving.signal)
        .then((got) => void (answer = got))
        .catch(() => {}) // it has left
        .finally(() => void (isOver = true));
      await scene.until(() => isOver || scene.parts.heldCalls.size > 0);
      leaving.abort();
      await called;
      await scene.until(() => scene.parts.heldCalls.size === 0);
      return answer;
    },
    everything: () => everything(http, endpoint),
    async close(): Promise<void> {
      await http.close();
      await scene.close();
    },
  };
}
export type EveryRoute = Awaited<ReturnType<typeof openEveryRoute>>;

/** Makes one of each kind of resource for a caller, with `word` in every text. */
export async function fill(scene: Scene, caller = scene.admin, word = mark): Promise<{ endpoint: Endpoint; ids: Ids }> {
  const { parts } = scene;
  const { ownerNo } = caller;
  const env = { SECRET: `the value ${word}` };
  const auth = { id: parts.ids.resource(), ownerNo, name: `auth ${word}`, username: "", password: "" };
  await parts.registry.createRegistryAuth(auth);
  const secret = await createSecret(parts, caller, { name: word, value: word, description: word });
  const volume = await createVolume(parts, caller, { name: `volume ${word}`, size: 1, dataCenterId: "EU-RO-1" });
  const named = { name: `template ${word}`, env, readme: `template ${word}` };
  const template = await scene.template({ imageName: "an/image", ...named }, caller);
  const settings = { name: `endpoint ${word}`, env, templateId: template.id, networkVolumeIds: [volume.id] };
  const endpoint = await scene.endpoint(settings, caller);
  const worker = await scene.worker(endpoint);
  const pod = await createPod(parts, caller, {
    name: `pod ${word}`,
    imageName: "alpine:3",
    env,
    networkVolumeId: volume.id,
  });
  const job = { input: { job: `job ${word}` } };
  const webhook = `https://example.com/${word}`;
  await scene.done(worker, await scene.running(endpoint, worker, { ...job, webhook }), { output: `job ${word}` });
  const [delivery] = await parts.deliveries.list({ endpointNos: [endpoint.no], limit: 1 });
  const receiver = { id: parts.ids.resource(), ownerNo, origin: `https://${word}` };
  await parts.receivers.note({ ...receiver, at: 1, error: word }, 10);
  const ids = {
    ...unknown,
    endpointId: endpoint.id,
    templateId: template.id,
    networkVolumeId: volume.id,
    containerRegistryAuthId: auth.id,
    workerId: worker.row.id,
    podId: pod.id,
    jobId: await scene.submit(endpoint, job),
    userId: parts.registry.user(ownerNo)?.id as string,
    keyId: caller.id,
    secretId: secret.id,
    deliveryId: delivery!.webhookId,
    receiverId: receiver.id,
  };
  return { endpoint, ids };
}

/** A path with these values for its parameters. */
export const filled = (url: string, values: Ids) =>
  url.replaceAll(/:(\w+)|\*/g, (found, name) => {
    const value = values[name ?? "*"];
    if (value === undefined) throw new Error(`the test knows no value for ${found} in ${url}`);
    return value;
  });

/** Everything that the admin can see and no other key may change. */
async function everything(http: Http, endpoint: Endpoint): Promise<unknown> {
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

/** A reply without the ids that its request contained. */
export function withoutIds({ status, json, text }: Answer, values: Ids) {
  const { requestId: _, ...rest } = json ?? {};
  let shown = json === undefined ? text : JSON.stringify(rest);
  for (const value of Object.values(values).sort((one, other) => other.length - one.length))
    shown = shown.replaceAll(value, "…");
  return { status, shown };
}
