import { isVisible } from "../../../domain/access/key.js";
import { shownAmount } from "../../../domain/usage/price.js";
import {
  createSecret,
  deleteSecret,
  type SecretInput,
  secretsOf,
  showSecret,
} from "../../../operations/access/save-secret.js";
import { savePubKey } from "../../../operations/access/ssh-keys.js";
import { isBound, seesMore, visibleRegistryAuths, volumeFor } from "../../../operations/access/visible.js";
import { listPods } from "../../../operations/pods/list-pods.js";
import { showRegistryAuth, showVolume } from "../../../operations/show-resources.js";
import {
  createRegistryAuth,
  deleteRegistryAuth,
  ownRegistryAuth,
  updateRegistryAuth,
} from "../../../operations/templates/save-registry-auth.js";
import { currentSpend } from "../../../operations/usage/prices.js";
import { dataCenters } from "./catalog.js";
import type { Context } from "./context.js";
import { endpointView } from "./endpoints.js";
import { podsView } from "./pods.js";
import { templateView } from "./templates.js";

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

const saveRegistryAuth = async ({ input }: { input: Credentials & { name: string } }, { parts, caller }: Context) =>
  showRegistryAuth(await createRegistryAuth(parts, caller, input));

async function changeRegistryAuth(
  { input: { id, ...given } }: { input: Credentials & { id: string } },
  { parts, caller }: Context,
) {
  return showRegistryAuth(await updateRegistryAuth(parts, caller, ownRegistryAuth(parts, caller, id), given));
}

async function removeRegistryAuth({ registryAuthId }: { registryAuthId: string }, { parts, caller }: Context) {
  await deleteRegistryAuth(parts, caller, ownRegistryAuth(parts, caller, registryAuthId));
  return true;
}

const createOwnSecret = async ({ input }: { input: SecretInput }, { parts, caller }: Context) =>
  showSecret(await createSecret(parts, caller, input));

async function removeSecret({ id }: { id: string }, { parts, caller }: Context) {
  await deleteSecret(parts, caller, id);
  return true;
}

async function updateUserSettings({ input }: { input?: { pubKey?: string | null } | null }, context: Context) {
  if (input?.pubKey !== undefined) await savePubKey(context.parts, context.caller, input.pubKey ?? "");
  return myself(undefined, context);
}

/** The user's SSH keys; a key of chosen endpoints sees nothing of its user. */
function pubKey(_: unknown, { parts, caller }: Context): string {
  seesMore(caller, "its user's settings");
  return parts.registry.user(caller.ownerNo)?.pubKey ?? "";
}

/**
 * The user's discount; null if there is none (contract: Endpoint, serverlessDiscount). Clients ask for it whenever they
 * list endpoints, so it is also null, not refused, for a key of chosen endpoints, which sees nothing of bills.
 */
function discount(_: unknown, { parts, caller }: Context) {
  const share = parts.registry.user(caller.ownerNo)?.terms.serverlessDiscount ?? 0;
  if (share === 0 || isBound(caller)) return null;
  return { discountFactor: share, type: "PERCENTAGE", expirationDate: null };
}

function myself(_: unknown, { caller, parts, seen }: Context) {
  return {
    id: parts.registry.user(caller.ownerNo)?.id,
    pubKey,
    endpoints: (_: unknown, context: Context) =>
      context.answer.list(seen.endpoints, (endpoint) => endpointView(context, endpoint)),
    endpoint: ({ id }: { id: string }, context: Context) => {
      const endpoint = parts.registry.endpoint(id);
      return isVisible(caller, endpoint) ? endpointView(context, endpoint) : null;
    },
    networkVolumes: (_: unknown, { answer }: Context) =>
      answer.list(seen.volumes, (volume) => volumeFor(caller, showVolume(parts, volume))),
    podTemplates: (_: unknown, context: Context) =>
      context.answer.list(seen.templates, (each) => templateView(context, each)),
    containerRegistryCreds: (_: unknown, { answer }: Context) =>
      answer.list(visibleRegistryAuths(parts, caller), showRegistryAuth),
    secrets: async (_: unknown, { answer }: Context) => answer.list(await secretsOf(parts, caller), showSecret),
    pods: ({ input }: { input?: { podId?: string | null } | null }, context: Context) => {
      const view = podsView(context);
      return context.answer.list(listPods(parts, caller, { id: input?.podId ?? undefined }), view);
    },
    flashApps: [],
    datacenters: dataCenters,
    savingsPlans: [],
    clientBalance: 0,
    serverlessDiscount: discount,
    currentSpendPerHr: () => {
      seesMore(caller, "bills");
      return currentSpend(parts, caller.ownerNo);
    },
    spendLimit: () => {
      seesMore(caller, "bills");
      return shownAmount(parts.registry.user(caller.ownerNo)?.terms.spendLimit ?? 0);
    },
    notifyPodsStale: false,
    notifyPodsGeneral: false,
    notifyLowBalance: false,
    machineQuota: 0,
    referralEarned: 0,
    signedTermsOfService: true,
  };
}

export const accountResolvers = {
  myself,
  saveRegistryAuth,
  updateRegistryAuth: changeRegistryAuth,
  deleteRegistryAuth: removeRegistryAuth,
  secretCreate: createOwnSecret,
  secretDelete: removeSecret,
  updateUserSettings,
};
