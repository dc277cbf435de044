import { buildSchema } from "graphql";
import { accountTypes } from "./account.js";
import { catalogTypes } from "./catalog.js";
import { endpointTypes } from "./endpoints.js";
import { hostedTypes } from "./hosted.js";
import { podTypes } from "./pods.js";

const roots = `
"Marks an input that is taken and has no effect: replies name it in the header x-millrace-ignored."
directive @ignored on INPUT_FIELD_DEFINITION

type Query {
  myself: Myself
  "Null if there is none for this key. A public one may be another user's."
  podTemplate(id: String!): Template
  "The caller's own templates, and all public ones."
  podTemplates(input: PodTemplateInput): [Template!]
  "Null if there is none for this key."
  pod(input: PodFilter): Pod
  gpuTypes(input: GpuTypeFilter): [GpuType!]
  serverlessGpuPools: [ServerlessGpuPool!]
  dataCenters: [DataCenter!]
  cpuFlavors(input: CpuFlavorInput): [CpuFlavor!]
  cpuTypes: [CpuType!]
  listings(input: ListingsInput): [Listing!]
  listing(id: String!): Listing
  listingFromRepo(repoOwner: String!, repoName: String!): Listing
  allAiApiPublicConfigs: [AiApiPublicConfig!]
  models: [Model!]
  myModels: [Model!]
  myModel(owner: String!, name: String!): Model
  modelRepoStorageUsage(owner: String): ModelRepoStorageUsage
  flashApp(flashAppId: String!): FlashApp
  flashAppByName(flashAppName: String!): FlashApp
  flashEnvironment(flashEnvironmentId: String!): FlashEnvironment
  flashEnvironmentByName(input: FlashEnvironmentByNameInput!): FlashEnvironment
  flashBuild(flashBuildId: String!): FlashBuild
  flashAuthRequestStatus(flashAuthRequestId: String!): FlashAuthRequest
}

input PodTemplateInput { isRunpod: Boolean }

type Mutation {
  saveEndpoint(input: EndpointInput!): Endpoint
  "Null when it is done. workersMin and workersMax must both be 0."
  deleteEndpoint(id: String!): String
  saveTemplate(input: SaveTemplateInput): Template
  deleteTemplate(templateName: String): String
  updateEndpointTemplate(input: UpdateEndpointTemplateInput): Endpoint
  saveRegistryAuth(input: SaveRegistryAuthInput!): ContainerRegistryAuth
  updateRegistryAuth(input: UpdateRegistryAuthInput!): ContainerRegistryAuth
  "True when it is done. No template may use it."
  deleteRegistryAuth(registryAuthId: String!): Boolean
  secretCreate(input: SecretCreateInput!): Secret
  "True when it is done."
  secretDelete(id: ID!): Boolean
  updateUserSettings(input: UpdateUserSettingsInput): Myself
  podFindAndDeployOnDemand(input: PodFindAndDeployOnDemandInput): Pod
  "The same: nothing here is let to the highest bidder."
  podRentInterruptable(input: PodFindAndDeployOnDemandInput): Pod
  deployCpuPod(input: deployCpuPodInput): Pod
  podStop(input: PodStopInput!): Pod
  podResume(input: PodResumeInput!): Pod
  podBidResume(input: PodBidResumeInput!): Pod
  "Null when it is done."
  podTerminate(input: PodTerminateInput!): String
  addModelToRepo(input: AddModelToRepoInput!): ModelRepoResult
  removeModelFromRepo(input: RemoveModelFromRepoInput!): ModelRepoResult
  createModelRepoUpload(input: CreateModelRepoUploadInput!): ModelRepoResult
  createModelRepoUploadBatch(input: CreateModelRepoUploadBatchInput!): ModelRepoResult
  completeModelRepoUpload(input: CompleteModelRepoUploadInput!): ModelRepoResult
  updateModelVersionStatus(uuid: ID, hash: ID, status: ModelVersionStatus!): ModelRepoResult
  createFlashApp(input: CreateFlashAppInput!): FlashApp
  deleteFlashApp(flashAppId: String!): Boolean
  createFlashEnvironment(input: CreateFlashEnvironmentInput!): FlashEnvironment
  deleteFlashEnvironment(flashEnvironmentId: String!): Boolean
  prepareFlashArtifactUpload(input: PrepareFlashArtifactUploadInput!): FlashArtifactUpload
  finalizeFlashArtifactUpload(input: FinalizeFlashArtifactUploadInput!): FlashBuild
  updateFlashBuildManifest(input: UpdateFlashBuildManifestInput!): FlashBuild
  deployBuildToEnvironment(input: DeployBuildToEnvironmentInput!): FlashEnvironment
  createFlashAuthRequest: FlashAuthRequest
}
`;

/** The GraphQL API: the contract's four operations, and all that public clients ask for. */
export const schema = buildSchema([endpointTypes, accountTypes, catalogTypes, podTypes, hostedTypes, roots].join("\n"));
