import {
  type Pod,
  PodCreate,
  PodUpdate,
  type RegistryAuth,
  RegistryAuthCreate,
  type Secret,
  SecretCreate,
  SecretUpdate,
  type Template,
  TemplateCreate,
  TemplateUpdate,
  type Volume,
  VolumeCreate,
  VolumeUpdate,
} from "@millrace/api";
import { Action } from "../../parts/action.js";
import { catalogControls } from "../../parts/form/catalog.js";
import { Log } from "../../parts/story/log.js";
import { Ago } from "../../parts/times.js";
import { send } from "../../session.js";
import { NounPage } from "./list.js";
import type { Noun } from "./noun.js";
import { SharedTemplates } from "./shared-templates.js";

const templates: Noun<Template> = {
  one: "template",
  title: "Templates",
  path: "/v1/templates",
  columns: [
    { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
    { title: "Id", kind: "id", of: ({ id }) => id },
    { title: "Image", kind: "why", of: ({ imageName }) => imageName, by: ({ imageName }) => imageName },
    { title: "For", of: ({ isServerless }) => (isServerless ? "endpoints" : "pods") },
    { title: "Disk (GB)", kind: "number", of: ({ containerDiskInGb }) => containerDiskInGb },
  ],
  empty: (
    <>
      <h2>No template yet</h2>
      <p>
        A template says what workers are made of: an image, or a folder with a handler, and its environment. Endpoints
        and pods are made from one.
      </p>
    </>
  ),
  create: { schema: TemplateCreate, defaults: { isServerless: true } },
  update: { schema: TemplateUpdate },
  loss: () => "Endpoints can no longer be made from it. It cannot be deleted while one uses it.",
  Below: SharedTemplates,
};

const volumes: Noun<Volume> = {
  one: "volume",
  title: "Volumes",
  path: "/v1/networkvolumes",
  columns: [
    { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
    { title: "Id", kind: "id", of: ({ id }) => id },
    { title: "Size (GB)", kind: "number", of: ({ size }) => size, by: ({ size }) => size },
    {
      title: "Used (GB)",
      kind: "number",
      of: ({ usedBytes }) => (usedBytes === undefined ? "–" : (usedBytes / 1e9).toFixed(1)),
      by: ({ usedBytes }) => usedBytes ?? 0,
    },
    { title: "Data center", of: ({ dataCenterId }) => dataCenterId },
  ],
  empty: (
    <>
      <h2>No volume yet</h2>
      <p>
        A volume is a directory that several workers and pods share, and that outlives them: for models, for instance.
      </p>
    </>
  ),
  create: { schema: VolumeCreate },
  update: { schema: VolumeUpdate },
  loss: ({ usedBytes }) =>
    `Everything in it is deleted for good${usedBytes ? `: ${(usedBytes / 1e9).toFixed(1)} GB` : ""}.`,
};

const pods: Noun<Pod> = {
  one: "pod",
  title: "Pods",
  path: "/v1/pods",
  columns: [
    { title: "Name", of: ({ name, id }) => name || id, by: ({ name }) => name },
    { title: "State", of: ({ status }) => status, by: ({ status }) => status },
    { title: "Why", kind: "why", of: ({ statusDetail }) => statusDetail },
    { title: "Image", kind: "why", of: ({ image }) => image },
    { title: "GPUs", of: ({ gpu }) => (gpu ? `${gpu.count} × ${gpu.displayName}` : "–") },
    { title: "An hour", kind: "number", of: ({ costPerHr }) => costPerHr, by: ({ costPerHr }) => costPerHr },
  ],
  empty: (
    <>
      <h2>No pod yet</h2>
      <p>A pod is a container that stays until it is stopped: a notebook, or a server of your own.</p>
    </>
  ),
  create: { schema: PodCreate },
  update: { schema: PodUpdate },
  controls: catalogControls,
  loss: ({ volumeInGb }) =>
    `Its container ends${volumeInGb > 0 ? `, and its own volume of ${volumeInGb} GB is deleted` : ""}.`,
  Actions: ({ resource: { id, actions } }) =>
    ["start", "stop", "restart", "reset"]
      .filter((verb) => actions.includes(verb))
      .map((verb) => <Action key={verb} verb={verb} act={() => send("POST", `/v1/pods/${id}/${verb}`)} />),
  More: ({ resource: { id, portMappings, publicIp, privateIp } }) => (
    <>
      {portMappings && Object.keys(portMappings).length > 0 && (
        <ul>
          {Object.entries(portMappings).map(([port, at]) => (
            <li key={port}>
              port {port} is at {publicIp ?? privateIp ?? location.hostname}:{at}
            </li>
          ))}
        </ul>
      )}
      <Log path={`/v1/pods/${id}/logs?follow=true`} label="Log" empty="It has printed nothing in the last day." />
    </>
  ),
};

const secrets: Noun<Secret> = {
  one: "secret",
  title: "Secrets",
  path: "/v1/secrets",
  columns: [
    { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
    { title: "In an environment", of: ({ name }) => <code>{`{{ RUNPOD_SECRET_${name} }}`}</code> },
    { title: "Description", kind: "why", of: ({ description }) => description },
    { title: "Made", of: ({ createdAt }) => <Ago at={createdAt} />, by: ({ createdAt }) => createdAt },
  ],
  empty: (
    <>
      <h2>No secret yet</h2>
      <p>A secret is a value that environments name without showing it. It is stored sealed, and masked in logs.</p>
    </>
  ),
  create: { schema: SecretCreate },
  update: { schema: SecretUpdate },
  More: () => (
    <p>Workers that have the old value keep it until they end: replace an endpoint's workers to give them a new one.</p>
  ),
  loss: () => "Workers whose environment names it do not start any more.",
};

const registries: Noun<RegistryAuth> = {
  one: "registry",
  title: "Registries",
  path: "/v1/containerregistryauth",
  columns: [
    { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
    { title: "Id", kind: "id", of: ({ id }) => id },
  ],
  empty: (
    <>
      <h2>No registry yet</h2>
      <p>Credentials for private images. A template names them by their id; the password is never shown again.</p>
    </>
  ),
  create: { schema: RegistryAuthCreate },
  loss: () => "Workers of templates that name it can no longer pull their images.",
};

export const Templates = () => <NounPage noun={templates} />;
export const Volumes = () => <NounPage noun={volumes} />;
export const Pods = () => <NounPage noun={pods} />;
export const Secrets = () => <NounPage noun={secrets} />;
export const Registries = () => <NounPage noun={registries} />;
