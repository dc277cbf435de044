const apps = "apps, their environments and builds exist only at the hosted service";
const models = "model repositories exist only at the hosted service";

/** The operations of public clients that are refused in words: who sends them, and why they are refused. */
export const refusals: Readonly<Record<string, { readonly by: readonly string[]; readonly why: string }>> = {
  addModelToRepo: { by: ["runpodctl"], why: models },
  completeModelRepoUpload: { by: ["runpodctl"], why: models },
  createFlashApp: { by: ["flash"], why: apps },
  createFlashAuthRequest: { by: ["flash"], why: apps },
  createFlashEnvironment: { by: ["flash"], why: apps },
  createModelRepoUpload: { by: ["runpodctl"], why: models },
  createModelRepoUploadBatch: { by: ["runpodctl"], why: models },
  deleteFlashApp: { by: ["flash"], why: apps },
  deleteFlashEnvironment: { by: ["flash"], why: apps },
  deployBuildToEnvironment: { by: ["flash"], why: apps },
  finalizeFlashArtifactUpload: { by: ["flash"], why: apps },
  flashApp: { by: ["flash"], why: apps },
  flashAppByName: { by: ["flash"], why: apps },
  prepareFlashArtifactUpload: { by: ["flash"], why: apps },
  removeModelFromRepo: { by: ["runpodctl"], why: models },
  updateFlashBuildManifest: { by: ["flash"], why: apps },
  updateModelVersionStatus: { by: ["runpodctl"], why: models },
};
