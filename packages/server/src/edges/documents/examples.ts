const image = "registry.example/image-to-text:1.4";
const run = { input: { prompt: "a mill by a river" }, policy: { executionTimeout: 300_000, ttl: 3_600_000 } };

const updateEndpoint = { workersMax: 5, idleTimeout: 30 };
const updateTemplate = { imageName: "registry.example/image-to-text:1.5" };
const updateNetworkVolume = { size: 200 };
const updatePod = { env: { LOG_LEVEL: "debug" } };

/** A body for each operation that takes one. */
export const examples: Readonly<Record<string, object>> = {
  CreateEndpoint: {
    name: "image-to-text",
    templateId: "jx1k2m3n4p5q6r",
    gpuTypeIds: ["NVIDIA L4"],
    workersMin: 0,
    workersMax: 3,
    idleTimeout: 5,
    scalerType: "QUEUE_DELAY",
    scalerValue: 4,
  },
  UpdateEndpoint: updateEndpoint,
  UpdateEndpointByPost: updateEndpoint,
  CreateTemplate: { name: "image-to-text", imageName: image, env: { MODEL: "small" }, containerDiskInGb: 20 },
  UpdateTemplate: updateTemplate,
  UpdateTemplateByPost: updateTemplate,
  CreateNetworkVolume: { name: "models", size: 100, dataCenterId: "EU-RO-1" },
  UpdateNetworkVolume: updateNetworkVolume,
  UpdateNetworkVolumeByPost: updateNetworkVolume,
  CreateContainerRegistryAuth: { name: "our registry", username: "puller", password: "a-password" },
  CreateUser: { name: "vision team", role: "member", quotas: { gpus: 4 }, spendLimit: 10 },
  UpdateUser: { weight: 2, quotas: { gpus: 8 } },
  CreateApiKey: { name: "web shop", scope: "read", expiresAt: "2099-01-01T00:00:00Z" },
  UpdateApiKey: { name: "web shop, old" },
  RotateApiKey: { overlapSeconds: 3_600 },
  UpdateSecret: { value: "hf_another_example" },
  CreateSecret: { name: "HF_TOKEN", value: "hf_example", description: "Downloads models." },
  CreatePod: {
    name: "notebook",
    imageName: "registry.example/notebook:3",
    gpuTypeIds: ["NVIDIA L4"],
    ports: ["8888/http", "22/tcp"],
    volumeInGb: 20,
  },
  UpdatePod: updatePod,
  UpdatePodByPut: updatePod,
  UpdatePodByPost: updatePod,
  SetPrices: { gpus: { "NVIDIA L4": 0.4 }, vcpu: 0.01, memoryGb: 0.002, volumeGb: 0.0001 },
  run,
  runSync: run,
  createEndpoint: {
    name: "image-to-text",
    type: "QUEUE",
    image,
    gpu: { pools: ["ADA_24"], count: 1 },
    workers: { min: 0, max: 3 },
    scaling: { type: "QUEUE_DELAY", queueDelay: 4 },
  },
  updateEndpoint: { workers: { max: 5 } },
  createTemplate: { name: "captions", image, env: { MODEL: "small" } },
  updateTemplate: { env: { MODEL: "large" } },
  createNetworkVolume: { name: "models", size: 100, dataCenter: "EU-RO-1" },
  updateNetworkVolume,
  createRegistry: { name: "a registry", username: "puller", password: "a-password" },
  updateSshKeys: {
    keys: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK8p2kF1m3nJ5qT7vX9zB2dG4hL6oQ8sU0wY1aC3eE5g laptop"],
  },
  createPod: { name: "notebook", image: "registry.example/notebook:3", gpu: { id: "NVIDIA L4", count: 1 } },
  updatePod: { locked: false, env: { LOG_LEVEL: "debug" } },
  podAction: { action: "stop" },
};
