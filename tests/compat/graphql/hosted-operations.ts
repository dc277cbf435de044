import type { Argument, Operation } from "./operation.js";
import { each, empty, flag, int, list, nothing, nullOnly, object, type Shape, text, texts } from "./shape.js";

const release = object({
  ...texts("id name tagName body readme branch license config tests iconUrl authorName createdAt releasedAt updatedAt"),
  deploys: int,
  build: object(texts("id imageName")),
});
const listing = object({
  ...texts("id repoId title repoName repoOwner repoOwnerAvatarUrl description category type language"),
  ...texts("createdAt updatedAt"),
  ...each("stars views deploys openIssues watchers", int),
  tags: list(text),
  listedRelease: release,
});
const version = object(texts("uuid hash status metadata createdAt updatedAt"));
const model = object({
  ...texts("id owner provider name status createdAt updatedAt"),
  users: list(object(texts("userId credentialType credentialReference status updatedAt"))),
  versions: list(version),
});
const upload = object({
  ...texts("sessionId status uploadId bucket key keyPrefix partSizeBytes completeUrl abortUrl"),
  ...each("partCount expiresInSeconds", int),
  parts: list(object({ ...texts("url expiresAt"), partNumber: int })),
});
const result = object({
  ...texts("message sessionId status"),
  success: flag,
  model,
  version,
  modelVersion: version,
  upload,
  uploads: list(upload),
});
const artifact = object(texts("objectKey downloadUrl expiresAt"));
const named = object(texts("id name"));
const environment = object({
  ...texts("id name state createdAt activeBuildId"),
  activeArtifact: artifact,
  ...each("endpoints networkVolumes", list(named)),
});
const build = object(texts("id objectKey manifest createdAt"));
const app = object({ ...texts("id name"), flashEnvironments: list(environment), flashBuilds: list(build) });
const request = object(texts("id status expiresAt apiKey"));

const hosted = /only at the hosted service/;
type Args = Readonly<Record<string, Argument>>;
const asks = (by: string, field: string, gives: Shape, args: Args = {}): Operation => ({
  ...{ by, root: "query", field, gives },
  args: () => args,
});
const refused = (by: string, field: string, gives: Shape, args: Args = {}): Operation => ({
  ...{ by, root: "mutation", field, gives, refusal: hosted },
  args: () => args,
});
const file = { fileName: "weights", fileSizeBytes: "1", partSizeBytes: "1", contentType: "application/octet-stream" };
const credential = { credentialType: "", credentialReference: "" };
const appId: Args = { flashAppId: ["String!", "app"] };

/** What exists only at the hosted service. */
export const hostedOperations: readonly Operation[] = [
  asks("MCP", "listings", empty(listing), { input: ["ListingsInput!", {}] }),
  asks("runpodctl", "listings", empty(listing), {
    input: [
      "ListingsInput!",
      {
        ...{ searchQuery: "", category: "", limit: 10, offset: 0 },
        orderBy: "stars",
        orderDirection: "desc",
        owner: "",
      },
    ],
  }),
  asks("runpodctl", "listing", nothing(listing), { id: ["String!", "x"] }),
  asks("runpodctl", "listingFromRepo", nothing(listing), { repoOwner: ["String!", "o"], repoName: ["String!", "n"] }),
  asks(
    "MCP",
    "allAiApiPublicConfigs",
    empty(
      object({
        ...texts("id aiApiId modelName displayName description metadata createdAt updatedAt"),
        isLive: flag,
      }),
    ),
  ),
  asks("runpodctl", "myModels", empty(model)),
  asks("runpodctl", "models", empty(model)),
  asks("runpodctl", "myModel", nothing(model), { owner: ["String!", "o"], name: ["String!", "n"] }),
  asks(
    "runpodctl",
    "modelRepoStorageUsage",
    nothing(
      object({
        ...texts("ownerId committedBytes reservedBytes usedBytes limitBytes availableBytes"),
        enforced: flag,
      }),
    ),
    { owner: ["String", null] },
  ),
  refused("runpodctl", "addModelToRepo", result, {
    input: [
      "AddModelToRepoInput!",
      {
        ...credential,
        ...{ name: "m", owner: "o", huggingFaceModel: "o/m", provider: "hub" },
        ...{ modelStatus: "READY", versionStatus: "READY", metadata: {} },
      },
    ],
  }),
  refused("runpodctl", "removeModelFromRepo", result, {
    input: ["RemoveModelFromRepoInput!", { owner: "o", name: "m" }],
  }),
  refused("runpodctl", "createModelRepoUpload", result, {
    input: [
      "CreateModelRepoUploadInput!",
      { ...file, ...credential, name: "m", owner: "o", modelVersionUuid: "", modelVersionHash: "", metadata: {} },
    ],
  }),
  refused("runpodctl", "createModelRepoUploadBatch", result, {
    input: [
      "CreateModelRepoUploadBatchInput!",
      { ...credential, name: "m", owner: "o", files: [file], modelVersionUuid: "", metadata: {} },
    ],
  }),
  refused("runpodctl", "completeModelRepoUpload", result, {
    input: ["CompleteModelRepoUploadInput!", { sessionId: "s" }],
  }),
  refused("runpodctl", "updateModelVersionStatus", result, {
    ...{ uuid: ["ID", "u"], hash: ["ID", null], status: ["ModelVersionStatus!", "READY"] },
  }),
  { ...asks("flash", "flashApp", app, appId), refusal: /Flash app not found/ },
  {
    ...asks("flash", "flashAppByName", app, { flashAppName: ["String!", "app"] }),
    refusal: /Flash app not found/,
  },
  asks("flash", "flashEnvironment", nothing(environment), { flashEnvironmentId: ["String!", "e"] }),
  asks("flash", "flashEnvironmentByName", nothing(environment), {
    input: ["FlashEnvironmentByNameInput!", { flashAppId: "app", name: "e" }],
  }),
  asks("flash", "flashBuild", nothing(build), { flashBuildId: ["String!", "b"] }),
  asks("flash", "flashAuthRequestStatus", nothing(request), { flashAuthRequestId: ["String!", "r"] }),
  refused("flash", "createFlashApp", app, { input: ["CreateFlashAppInput!", { name: "app" }] }),
  refused("flash", "deleteFlashApp", nullOnly, appId),
  refused("flash", "createFlashEnvironment", environment, {
    input: ["CreateFlashEnvironmentInput!", { flashAppId: "app", name: "e" }],
  }),
  refused("flash", "deleteFlashEnvironment", nullOnly, { flashEnvironmentId: ["String!", "e"] }),
  refused("flash", "prepareFlashArtifactUpload", object(texts("uploadUrl objectKey expiresAt")), {
    input: ["PrepareFlashArtifactUploadInput!", { flashAppId: "app", tarballSize: 4_000_000_000 }],
  }),
  refused("flash", "finalizeFlashArtifactUpload", build, {
    input: ["FinalizeFlashArtifactUploadInput!", { flashAppId: "app", objectKey: "k", manifest: { a: 1 } }],
  }),
  refused("flash", "updateFlashBuildManifest", build, {
    input: ["UpdateFlashBuildManifestInput!", { flashBuildId: "b", manifest: { a: 1 } }],
  }),
  refused("flash", "deployBuildToEnvironment", environment, {
    input: ["DeployBuildToEnvironmentInput!", { flashEnvironmentId: "e", flashBuildId: "b" }],
  }),
  refused("flash", "createFlashAuthRequest", request),
];
