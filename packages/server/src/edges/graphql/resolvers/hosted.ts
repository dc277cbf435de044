import { Refusal } from "../../../errors.js";

/** Refuses to make what exists only at the hosted service. */
const notOffered = (what: string) => () => {
  throw new Refusal("NOT_OFFERED_HERE", `${what} exist only at the hosted service.`);
};

/** An app is looked for by name before it is made. Clients wait for these words. */
const appNotFound = () => {
  throw new Refusal("NOT_FOUND", "Flash app not found: apps exist only at the hosted service.");
};

const models = notOffered("Model repositories");
const apps = notOffered("Apps");

/** What exists only at the hosted service: lists are empty, and nothing can be made. */
export const hostedResolvers = {
  listings: [],
  listing: null,
  listingFromRepo: null,
  allAiApiPublicConfigs: [],
  models: [],
  myModels: [],
  myModel: null,
  modelRepoStorageUsage: null,
  flashApp: appNotFound,
  flashAppByName: appNotFound,
  flashEnvironment: null,
  flashEnvironmentByName: null,
  flashBuild: null,
  flashAuthRequestStatus: null,
  addModelToRepo: models,
  removeModelFromRepo: models,
  createModelRepoUpload: models,
  createModelRepoUploadBatch: models,
  completeModelRepoUpload: models,
  updateModelVersionStatus: models,
  createFlashApp: apps,
  deleteFlashApp: apps,
  createFlashEnvironment: apps,
  deleteFlashEnvironment: apps,
  prepareFlashArtifactUpload: apps,
  finalizeFlashArtifactUpload: apps,
  updateFlashBuildManifest: apps,
  deployBuildToEnvironment: apps,
  createFlashAuthRequest: apps,
};
