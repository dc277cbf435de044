import type { Endpoint } from "../domain/endpoints/endpoint.js";
import { createPod } from "../operations/pods/save-pod.js";
import { createVolume } from "../operations/volumes/save-volume.js";
import type { Http } from "../testing/http-fixture.js";
import type { Scene } from "../testing/scene-fixture.js";
import { made } from "./rest-v1/answers-fixture.js";

/** A word in all secrets: values of variables, secrets and passwords. */
export const hidden = "a-hidden-word";

/** A change that a caller makes: what the audit log calls it, and what it takes to make it. */
export interface KnownChange {
  readonly action: string;
  readonly body?: () => Promise<object> | object;
  /** Values for parameters of the route, instead of those of anything new. */
  readonly ids?: () => Promise<Record<string, string>>;
}

const env = { TOKEN: hidden };
let names = 0;
const name = () => `thing-${++names}`;

/** Makes new things of the scene's admin, and returns their ids. */
export function newThings(scene: Scene, http: Http) {
  const { parts, admin } = scene;
  const posted = async (path: string, body: object): Promise<string> => (await made(http.post(path, body))).id;
  const endpoint = (more: object = {}): Promise<Endpoint> =>
    scene.endpoint({ name: name(), env, workersMax: 0, ...more });
  const podId = async () => (await createPod(parts, admin, { name: name(), imageName: "alpine:3", env })).id;
  const template = () => scene.template({ imageName: "an/image", env });
  return {
    endpointId: async () => (await endpoint()).id,
    /** An endpoint with a job in its queue. */
    async waitingEndpointId(): Promise<string> {
      const made = await endpoint();
      await scene.submit(made);
      return made.id;
    },
    templateId: async () => (await template()).id,
    templateName: async () => (await template()).settings.name,
    networkVolumeId: async () =>
      (await createVolume(parts, admin, { name: name(), size: 1, dataCenterId: "EU-RO-1" })).id,
    containerRegistryAuthId: () =>
      posted("/v1/containerregistryauth", { name: name(), username: "u", password: hidden }),
    userId: () => posted("/v1/users", { name: name() }),
    keyId: () => posted("/v1/apikeys", { name: name() }),
    secretId: () => posted("/v1/secrets", { name: name(), value: hidden }),
    podId,
    async stoppedPodId(): Promise<string> {
      const id = await podId();
      await made(http.post(`/v1/pods/${id}/stop`));
      return id;
    },
    /** An idle worker that can be paused. */
    async workerId(): Promise<string> {
      const worker = await scene.worker(await endpoint({ workersMax: 1, flashBootType: "FLASHBOOT" }));
      await scene.take(worker);
      return worker.row.id;
    },
    async deliveryId(): Promise<string> {
      const of = await endpoint({ workersMax: 1 });
      const worker = await scene.worker(of);
      await scene.done(worker, await scene.running(of, worker, { input: {}, webhook: `https://${name()}.example/` }));
      await scene.advance(100);
      return (await parts.deliveries.list({ endpointNos: [of.no], limit: 1 }))[0]?.webhookId ?? "";
    },
    async receiverId(): Promise<string> {
      const receiver = { id: parts.ids.resource(), ownerNo: admin.ownerNo, origin: `https://${name()}.example` };
      await parts.receivers.note({ ...receiver, at: 1, error: "" }, 10);
      return receiver.id;
    },
  };
}
export type NewThings = ReturnType<typeof newThings>;

/** Every change over REST, by its method and path, with bodies and ids with which it is made. */
export function restChanges(make: NewThings, http: Http): Record<string, KnownChange> {
  const renamed = () => ({ name: name() });
  const volume = () => ({ name: name(), size: 10, dataCenterId: "EU-RO-1", dataCenter: "EU-RO-1" });
  const credentials = () => ({ name: name(), username: "u", password: hidden });
  const stopped = async () => ({ podId: await make.stoppedPodId() });
  const changedOnce = async () => {
    const endpointId = await make.endpointId();
    await made(http.call("PATCH", `/v1/endpoints/${endpointId}`, { body: { env: { ...env, MORE: "1" } } }));
    return { endpointId, version: "1" };
  };
  const paused = async () => {
    const receiverId = await make.receiverId();
    await made(http.post(`/v1/webhooks/receivers/${receiverId}/pause`));
    return { receiverId };
  };
  const waiting = async () => ({ endpointId: await make.waitingEndpointId() });
  const serverless = () => ({
    name: name(),
    type: "QUEUE",
    image: "alpine:3",
    env,
    scaling: { type: "REQUEST_COUNT", requestCount: 1 },
  });
  return {
    "POST /v1/endpoints": {
      action: "endpoint.create",
      body: async () => ({ name: name(), env, templateId: await make.templateId() }),
    },
    "PATCH /v1/endpoints/:endpointId": { action: "endpoint.update", body: () => ({ env: { TOKEN: `2 ${hidden}` } }) },
    "DELETE /v1/endpoints/:endpointId": { action: "endpoint.delete" },
    "POST /v1/endpoints/:endpointId/restart": { action: "endpoint.restart" },
    "POST /v1/endpoints/:endpointId/releases/:version/rollback": { action: "endpoint.rollback", ids: changedOnce },
    "POST /v1/templates": { action: "template.create", body: () => ({ name: name(), imageName: "an/image", env }) },
    "PATCH /v1/templates/:templateId": { action: "template.update", body: renamed },
    "DELETE /v1/templates/:templateId": { action: "template.delete" },
    "POST /v1/networkvolumes": { action: "volume.create", body: volume },
    "PATCH /v1/networkvolumes/:networkVolumeId": { action: "volume.update", body: renamed },
    "DELETE /v1/networkvolumes/:networkVolumeId": { action: "volume.delete" },
    "POST /v1/containerregistryauth": { action: "registryAuth.create", body: credentials },
    "DELETE /v1/containerregistryauth/:containerRegistryAuthId": { action: "registryAuth.delete" },
    "POST /v1/users": { action: "user.create", body: renamed },
    "PATCH /v1/users/:userId": { action: "user.update", body: renamed },
    "DELETE /v1/users/:userId": { action: "user.delete" },
    "POST /v1/users/:userId/webhook-secret/rotate": { action: "user.rotateWebhookSecret" },
    "POST /v1/apikeys": { action: "key.create", body: renamed },
    "PATCH /v1/apikeys/:keyId": { action: "key.update", body: renamed },
    "POST /v1/apikeys/:keyId/rotate": { action: "key.rotate" },
    "DELETE /v1/apikeys/:keyId": { action: "key.delete" },
    "POST /v1/secrets": { action: "secret.create", body: () => ({ name: name(), value: hidden }) },
    "PATCH /v1/secrets/:secretId": { action: "secret.update", body: () => ({ value: `2 ${hidden}` }) },
    "DELETE /v1/secrets/:secretId": { action: "secret.delete" },
    "POST /v1/pods": { action: "pod.create", body: () => ({ name: name(), imageName: "alpine:3", env }) },
    "PATCH /v1/pods/:podId": { action: "pod.update", body: renamed },
    "PUT /v1/pods/:podId": { action: "pod.update", body: renamed },
    "DELETE /v1/pods/:podId": { action: "pod.delete" },
    "POST /v1/pods/:podId/start": { action: "pod.start", ids: stopped },
    "POST /v1/pods/:podId/stop": { action: "pod.stop" },
    "POST /v1/pods/:podId/restart": { action: "pod.restart" },
    "POST /v1/pods/:podId/reset": { action: "pod.reset" },
    "POST /v1/workers/:workerId/stop": { action: "worker.stop" },
    "POST /v1/workers/:workerId/pause": { action: "worker.pause" },
    "PUT /v1/prices": { action: "prices.update", body: () => ({ vcpu: ++names }) },
    "POST /v1/webhooks/deliveries/:deliveryId/redeliver": { action: "delivery.redeliver" },
    "POST /v1/webhooks/receivers/:receiverId/pause": { action: "receiver.pause" },
    "POST /v1/webhooks/receivers/:receiverId/resume": { action: "receiver.resume", ids: paused },
    "POST /v2/:endpointId/purge-queue": { action: "endpoint.purgeQueue", ids: waiting },
    "POST /v2/serverless": { action: "endpoint.create", body: serverless },
    "PATCH /v2/serverless/:endpointId": { action: "endpoint.update", body: renamed },
    "DELETE /v2/serverless/:endpointId": { action: "endpoint.delete" },
    "POST /v2/templates": { action: "template.create", body: () => ({ name: name(), image: "alpine:3", env }) },
    "PATCH /v2/templates/:templateId": { action: "template.update", body: renamed },
    "DELETE /v2/templates/:templateId": { action: "template.delete" },
    "POST /v2/network-volumes": { action: "volume.create", body: volume },
    "PATCH /v2/network-volumes/:networkVolumeId": { action: "volume.update", body: renamed },
    "DELETE /v2/network-volumes/:networkVolumeId": { action: "volume.delete" },
    "POST /v2/registries": { action: "registryAuth.create", body: credentials },
    "DELETE /v2/registries/:containerRegistryAuthId": { action: "registryAuth.delete" },
    "POST /v2/pods": {
      action: "pod.create",
      body: () => ({ name: name(), image: "alpine:3", env, cpu: { id: "cpu3c", vcpuCount: 2 } }),
    },
    "PATCH /v2/pods/:podId": { action: "pod.update", body: renamed },
    "POST /v2/pods/:podId/action": { action: "pod.stop", body: () => ({ action: "stop" }) },
    "DELETE /v2/pods/:podId": { action: "pod.delete" },
    "PUT /v2/account/ssh-keys": { action: "user.update", body: () => ({ keys: [`ssh-ed25519 AAAA ${name()}`] }) },
  };
}

/** Every mutation of GraphQL, by its field, with a call that makes its change. */
export function graphqlChanges(
  make: NewThings,
): Record<string, readonly [action: string, call: () => Promise<string>]> {
  const pairs = `env: [{ key: "TOKEN", value: "${hidden}" }]`;
  const credentials = `username: "u", password: "${hidden}"`;
  return {
    saveEndpoint: [
      "endpoint.create",
      async () =>
        `saveEndpoint(input: { name: "${name()}", templateId: "${await make.templateId()}", gpuIds: "AMPERE_16" }) { id }`,
    ],
    deleteEndpoint: ["endpoint.delete", async () => `deleteEndpoint(id: "${await make.endpointId()}")`],
    saveTemplate: [
      "template.create",
      async () =>
        `saveTemplate(input: { name: "${name()}", imageName: "an/image", dockerArgs: "", containerDiskInGb: 5, volumeInGb: 0, ${pairs} }) { id }`,
    ],
    deleteTemplate: ["template.delete", async () => `deleteTemplate(templateName: "${await make.templateName()}")`],
    updateEndpointTemplate: [
      "endpoint.update",
      async () =>
        `updateEndpointTemplate(input: { endpointId: "${await make.endpointId()}", templateId: "${await make.templateId()}" }) { id }`,
    ],
    saveRegistryAuth: [
      "registryAuth.create",
      async () => `saveRegistryAuth(input: { name: "${name()}", ${credentials} }) { id }`,
    ],
    updateRegistryAuth: [
      "registryAuth.update",
      async () => `updateRegistryAuth(input: { id: "${await make.containerRegistryAuthId()}", ${credentials} }) { id }`,
    ],
    deleteRegistryAuth: [
      "registryAuth.delete",
      async () => `deleteRegistryAuth(registryAuthId: "${await make.containerRegistryAuthId()}")`,
    ],
    secretCreate: [
      "secret.create",
      async () => `secretCreate(input: { name: "${name()}", value: "${hidden}" }) { id }`,
    ],
    secretDelete: ["secret.delete", async () => `secretDelete(id: "${await make.secretId()}")`],
    updateUserSettings: [
      "user.update",
      async () => `updateUserSettings(input: { pubKey: "ssh-ed25519 AAAA ${name()}" }) { id }`,
    ],
    podFindAndDeployOnDemand: [
      "pod.create",
      async () => `podFindAndDeployOnDemand(input: { name: "${name()}", imageName: "alpine:3", ${pairs} }) { id }`,
    ],
    podRentInterruptable: [
      "pod.create",
      async () => `podRentInterruptable(input: { name: "${name()}", imageName: "alpine:3", ${pairs} }) { id }`,
    ],
    deployCpuPod: [
      "pod.create",
      async () => `deployCpuPod(input: { name: "${name()}", imageName: "alpine:3" }) { id }`,
    ],
    podStop: ["pod.stop", async () => `podStop(input: { podId: "${await make.podId()}" }) { id }`],
    podResume: ["pod.start", async () => `podResume(input: { podId: "${await make.stoppedPodId()}" }) { id }`],
    podBidResume: ["pod.start", async () => `podBidResume(input: { podId: "${await make.stoppedPodId()}" }) { id }`],
    podTerminate: ["pod.delete", async () => `podTerminate(input: { podId: "${await make.podId()}" })`],
  };
}
