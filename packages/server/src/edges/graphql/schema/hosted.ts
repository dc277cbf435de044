/** What exists only at the hosted service: its lists are empty here, and its mutations are refused in words. */
export const hostedTypes = `
input ListingsInput {
  searchQuery: String
  category: String
  limit: Int
  offset: Int
  orderBy: String
  orderDirection: String
  owner: String
}
type HubBuild { id: String imageName: String }
type HubRelease {
  id: String
  name: String
  tagName: String
  body: String
  readme: String
  branch: String
  license: String
  config: String
  tests: String
  deploys: Int
  iconUrl: String
  authorName: String
  createdAt: String
  releasedAt: String
  updatedAt: String
  build: HubBuild
}
type Listing {
  id: String
  repoId: String
  title: String
  repoName: String
  repoOwner: String
  repoOwnerAvatarUrl: String
  description: String
  category: String
  type: String
  tags: [String!]
  stars: Int
  views: Int
  deploys: Int
  openIssues: Int
  watchers: Int
  language: String
  createdAt: String
  updatedAt: String
  listedRelease: HubRelease
}
type AiApiPublicConfig {
  id: String
  aiApiId: String
  modelName: String
  displayName: String
  description: String
  metadata: String
  isLive: Boolean
  createdAt: String
  updatedAt: String
}

type ModelUser { userId: String credentialType: String credentialReference: String status: String updatedAt: String }
type ModelVersion { uuid: String hash: String status: String metadata: JSON createdAt: String updatedAt: String }
type Model {
  id: String
  owner: String
  provider: String
  name: String
  status: String
  createdAt: String
  updatedAt: String
  users: [ModelUser!]
  versions: [ModelVersion!]
}
type ModelRepoUploadPart { partNumber: Int url: String expiresAt: String }
type ModelRepoUpload {
  sessionId: String
  status: String
  uploadId: String
  bucket: String
  key: String
  keyPrefix: String
  partSizeBytes: String
  partCount: Int
  expiresInSeconds: Int
  parts: [ModelRepoUploadPart!]
  completeUrl: String
  abortUrl: String
}
"The result of every mutation of the model repository."
type ModelRepoResult {
  success: Boolean
  message: String
  sessionId: String
  status: String
  model: Model
  version: ModelVersion
  modelVersion: ModelVersion
  upload: ModelRepoUpload
  uploads: [ModelRepoUpload!]
}
type ModelRepoStorageUsage {
  ownerId: String
  committedBytes: String
  reservedBytes: String
  usedBytes: String
  limitBytes: String
  availableBytes: String
  enforced: Boolean
}
scalar ModelVersionStatus
input AddModelToRepoInput {
  name: String!
  owner: String
  huggingFaceModel: String
  provider: String
  credentialType: String
  credentialReference: String
  modelStatus: String
  versionStatus: String
  metadata: JSON
}
input RemoveModelFromRepoInput { owner: String! name: String! }
input CreateModelRepoUploadInput {
  name: String!
  owner: String
  fileName: String!
  fileSizeBytes: String!
  partSizeBytes: String
  contentType: String
  credentialType: String
  credentialReference: String
  modelVersionUuid: String
  modelVersionHash: String
  metadata: JSON
}
input ModelRepoUploadBatchFileInput {
  fileName: String!
  fileSizeBytes: String!
  partSizeBytes: String
  contentType: String
}
input CreateModelRepoUploadBatchInput {
  name: String!
  owner: String
  files: [ModelRepoUploadBatchFileInput!]!
  credentialType: String
  credentialReference: String
  modelVersionUuid: String
  metadata: JSON
}
input CompleteModelRepoUploadInput { sessionId: String! }

type FlashReference { id: String name: String }
type FlashArtifact { objectKey: String downloadUrl: String expiresAt: String }
type FlashEnvironment {
  id: String
  name: String
  state: String
  createdAt: String
  activeBuildId: String
  activeArtifact: FlashArtifact
  endpoints: [FlashReference!]
  networkVolumes: [FlashReference!]
}
type FlashBuild { id: String objectKey: String manifest: JSON createdAt: String }
type FlashApp { id: String name: String flashEnvironments: [FlashEnvironment!] flashBuilds: [FlashBuild!] }
type FlashArtifactUpload { uploadUrl: String objectKey: String expiresAt: String }
type FlashAuthRequest { id: String status: String expiresAt: String apiKey: String }
input CreateFlashAppInput { name: String! }
input CreateFlashEnvironmentInput { flashAppId: String! name: String! }
input FlashEnvironmentByNameInput { flashAppId: String! name: String! }
input PrepareFlashArtifactUploadInput { flashAppId: String! tarballSize: Float }
input FinalizeFlashArtifactUploadInput { flashAppId: String! objectKey: String! manifest: JSON }
input UpdateFlashBuildManifestInput { flashBuildId: String! manifest: JSON }
input DeployBuildToEnvironmentInput { flashEnvironmentId: String! flashBuildId: String! }
`;
