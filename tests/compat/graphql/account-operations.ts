import type { Operation } from "./operation.js";
import { each, empty, flag, int, list, listOrNone, number, object, orNull, text, texts } from "./shape.js";

const settings = object(texts("id pubKey"));
const auth = object(texts("id name"));
const credentials = { username: "user", password: "word" };
const pubKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 someone@example";

/** The caller's user, its registry credentials and its secrets. */
export const accountOperations: readonly Operation[] = [
  {
    by: "Python",
    root: "query",
    field: "myself",
    isLiteral: true,
    gives: object({
      ...texts("id pubKey"),
      networkVolumes: list(object({ ...texts("id name dataCenterId"), size: int })),
    }),
  },
  {
    by: "runpodctl: the user",
    root: "query",
    field: "myself",
    gives: object({
      id: text,
      email: orNull(text),
      ...each("clientBalance currentSpendPerHr spendLimit", number),
      ...each("notifyPodsStale notifyPodsGeneral notifyLowBalance", flag),
    }),
  },
  {
    by: "strangers' clients: the user",
    root: "query",
    field: "myself",
    gives: object({
      ...each("machineQuota referralEarned", number),
      signedTermsOfService: flag,
      savingsPlans: listOrNone(text),
      datacenters: list(object(texts("id name"))),
      containerRegistryCreds: list(auth),
    }),
  },
  { by: "runpodctl, Go: SSH keys", root: "query", field: "myself", gives: settings },
  {
    by: "a client of secrets",
    root: "query",
    field: "myself",
    gives: object({ secrets: list(object({ ...texts("id name createdAt"), description: orNull(text) })) }),
  },
  ...[true, false].map(
    (isLiteral): Operation => ({
      by: isLiteral ? "Python" : "runpodctl",
      root: "mutation",
      field: "updateUserSettings",
      isLiteral,
      args: () => ({ input: ["UpdateUserSettingsInput", { pubKey }] }),
      gives: settings,
    }),
  ),
  ...[true, false].flatMap((isLiteral): Operation[] => [
    {
      by: isLiteral ? "Python" : "others",
      root: "mutation",
      field: "saveRegistryAuth",
      isLiteral,
      args: () => ({ input: ["SaveRegistryAuthInput!", { name: `made ${isLiteral}`, ...credentials }] }),
      gives: auth,
    },
    {
      by: isLiteral ? "Python" : "others",
      root: "mutation",
      field: "updateRegistryAuth",
      isLiteral,
      args: (made) => ({ input: ["UpdateRegistryAuthInput!", { id: made.auth, ...credentials }] }),
      gives: auth,
    },
  ]),
  {
    by: "Python",
    root: "mutation",
    field: "deleteRegistryAuth",
    isLiteral: true,
    args: (made) => ({ registryAuthId: ["String!", made.spareAuth] }),
    gives: flag,
  },
  {
    by: "a client of secrets",
    root: "mutation",
    field: "secretCreate",
    args: () => ({ input: ["SecretCreateInput!", { name: "made", value: "hidden", description: "what for" }] }),
    gives: object(texts("id name description createdAt")),
  },
  {
    by: "a client of secrets",
    root: "mutation",
    field: "secretDelete",
    args: (made) => ({ id: ["ID!", made.secret] }),
    gives: flag,
  },
  {
    by: "flash: its apps",
    root: "query",
    field: "myself",
    gives: object({ flashApps: empty(object(texts("id name"))) }),
  },
];
