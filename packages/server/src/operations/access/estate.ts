import { changed } from "../../domain/access/audit.js";
import type { ApiKey } from "../../domain/access/key.js";
import { secretsNamed } from "../../domain/access/secret.js";
import type { User } from "../../domain/access/user.js";
import { servingVersion } from "../../domain/endpoints/endpoint.js";
import { isPath } from "../../domain/endpoints/template.js";
import { isPod } from "../../domain/pods/pod.js";
import { invalid, Refusal } from "../../errors.js";
import { limits } from "../../limits/index.js";
import { auditing } from "../../store/audit.js";
import { turns } from "../../turns.js";
import { deleteEndpoint } from "../endpoints/save-endpoint.js";
import type { Needs, Parts } from "../needs.js";
import { deletePod } from "../pods/save-pod.js";
import { deleteRegistryAuth } from "../templates/save-registry-auth.js";
import { deleteTemplate } from "../templates/save-template.js";
import { bankAll } from "../usage/meter-usage.js";
import { keptGb, mayBeGiven } from "../usage/quotas.js";
import { deleteVolume } from "../volumes/save-volume.js";
import { type Caller, changeAs } from "./change-as.js";
import { mayKeep, userFor } from "./save-key.js";
import { removeSecret } from "./save-secret.js";

// What becomes of a deleted user's resources.

/** Refuses to delete public templates that other users' endpoints use. */
export function checkUsedByOthers({ registry }: Needs<"registry">, { no, id }: User): void {
  const others = registry
    .endpoints()
    .filter((each) => each.ownerNo !== no && each.deletedAt === undefined && !isPod(each));
  const used = new Set(others.map(({ settings }) => settings.templateId));
  const count = registry.templates().filter((template) => template.ownerNo === no && used.has(template.id)).length;
  if (count === 0) return;
  const which = count === 1 ? "A public template" : `${count} public templates`;
  throw new Refusal(
    "IN_USE",
    `${which} of the user '${id}' ${count === 1 ? "is" : "are"} used by others: use ?transferTo={userId}.`,
  );
}

/** What a user owns. */
export async function owns({ registry, secrets }: Needs<"registry" | "secrets">, { no }: User) {
  const isTheirs = ({ ownerNo }: { ownerNo: number }) => ownerNo === no;
  return {
    endpoints: registry.endpoints().filter((each) => isTheirs(each) && each.deletedAt === undefined && !isPod(each)),
    pods: registry
      .endpoints()
      .filter(isPod)
      .filter((each) => isTheirs(each) && each.deletedAt === undefined),
    templates: registry.templates().filter(isTheirs),
    volumes: registry.volumes().filter(isTheirs),
    registryAuths: registry.registryAuths().filter(isTheirs),
    secrets: await secrets.of(no),
  };
}

type Owned = Awaited<ReturnType<typeof owns>>;

const nouns = {
  endpoints: ["endpoint", "endpoints"],
  pods: ["pod", "pods"],
  templates: ["template", "templates"],
  volumes: ["network volume", "network volumes"],
  registryAuths: ["container registry auth", "container registry auths"],
  secrets: ["secret", "secrets"],
} as const;

/** What is owned, in words: `2 endpoints, 1 template`; empty if nothing is. */
export function describe(owned: Owned): string {
  const counted = Object.entries(nouns).flatMap(([noun, [one, many]]) => {
    const count = owned[noun as keyof typeof nouns].length;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
  return counted.join(", ");
}

/** The ids of what is owned, of each kind of which there is any. */
const idsOf = (owned: Owned): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(owned).flatMap(([noun, each]) => (each.length === 0 ? [] : [[noun, each.map(({ id }) => id)]])),
  );

/** Deletes all of a user's resources, but none that another request gives away meanwhile. */
export async function deleteAll(needs: Parts, asking: Caller, user: User): Promise<void> {
  const { endpoints, pods, templates, volumes, registryAuths, secrets } = await owns(needs, user);
  for (const pod of pods) await unlessGone(deletePod(needs, asking, pod, { isLockIgnored: true }));
  for (const endpoint of endpoints) await unlessGone(deleteEndpoint(needs, asking, endpoint, { setToZero: true }));
  for (const template of templates) await unlessGone(deleteTemplate(needs, asking, template));
  for (const auth of registryAuths) await unlessGone(deleteRegistryAuth(needs, asking, auth, user.no));
  const isTheirs = (volumeId: string) => needs.registry.volume(volumeId)?.ownerNo === user.no;
  for (const { id } of volumes)
    if (isTheirs(id))
      await deleteVolume(needs, asking, id, user.no).catch((error) => {
        if (isTheirs(id)) throw error; // an unknown volume is refused with 400
      });
  for (const { id } of secrets)
    await changeAs(needs, asking, async (caller) => {
      const secret = (await needs.secrets.of(user.no)).find((each) => each.id === id);
      if (secret) await removeSecret(needs, caller, secret);
    });
}

/** Waits for a deletion; the same request, sent twice at once, may have made it already. */
async function unlessGone(deletion: Promise<void>): Promise<void> {
  await deletion.catch((error) => {
    if (!(error instanceof Refusal && error.status === 404)) throw error;
  });
}

/**
 * Gives all of a user's resources to another user. First refuses what is beyond that user's quotas, names that both have
 * used, and local processes.
 */
export async function transfer(needs: Parts, caller: ApiKey, user: User, heirId: string): Promise<void> {
  const { registry } = needs;
  const heir = userFor(needs, caller, heirId);
  if (heir.no === user.no) throw invalid("'transferTo' must name another user.");
  mayKeep(needs, caller, heir);
  const [given, kept] = [await owns(needs, user), await owns(needs, heir)];
  if (!registry.isFirstAdmin(heir.no)) hasNoProcesses(given);
  if (given.pods.length + kept.pods.length > limits.podsPerUserMax)
    throw new Refusal("IN_USE", `A user may have ${limits.podsPerUserMax} pods: delete some first.`);
  const count = (noun: "pods" | "endpoints" | "templates") => ({ has: kept[noun].length, more: given[noun].length });
  mayBeGiven(heir, {
    pods: count("pods"),
    endpoints: count("endpoints"),
    templates: count("templates"),
    volumesGb: { has: keptGb(needs, heir.no), more: keptGb(needs, user.no) },
  });
  const taken = new Set(kept.templates.map(({ settings }) => settings.name));
  const same = given.templates.find(({ settings }) => taken.has(settings.name));
  if (same) throw new Refusal("IN_USE", `Both users have a template named '${same.settings.name}': rename one first.`);
  const auths = new Set(kept.registryAuths.map(({ name }) => name));
  const sameAuth = given.registryAuths.find(({ name }) => auths.has(name));
  if (sameAuth)
    throw new Refusal(
      "IN_USE",
      `Both users have a container registry auth named '${sameAuth.name}': delete one first.`,
    );
  const secrets = new Set(kept.secrets.map(({ name }) => name));
  const sameSecret = given.secrets.find(({ name }) => secrets.has(name));
  if (sameSecret) throw new Refusal("IN_USE", `Both users have a secret named '${sameSecret.name}': delete one first.`);
  const asked = await secretsAskedBy(needs, given);
  const gained = kept.secrets.find(({ name }) => asked.has(name));
  if (gained) {
    const words = `A resource of the user '${user.id}' refers to a secret '${gained.name}', which '${user.id}' lacks and '${heir.id}' has`;
    throw new Refusal("IN_USE", `${words}: remove the reference first, or transfer to another user.`);
  }
  await bankAll(needs); // each pays for its own time
  auditing.note(changed("user.transfer", user.id, undefined, { to: heir.id, what: describe(given), ...idsOf(given) }));
  await registry.giveAll(user.no, heir.no);
}

/** Refuses resources that only the first admin may have. */
function hasNoProcesses({ templates, pods }: Owned): void {
  const local = templates.find(({ settings }) => isPath(settings.imageName));
  if (local)
    throw new Refusal("IN_USE", `The template '${local.id}' runs local processes, which only the first admin may.`);
  const pod = pods.find(({ settings }) => isPath(settings.pod.container.imageName));
  if (pod) throw new Refusal("IN_USE", `The pod '${pod.id}' is a local process, which only the first admin may have.`);
}

/** The names of the secrets that a user's resources refer to, now and in the versions that their workers are made of. */
async function secretsAskedBy({ registry }: Needs<"registry">, { endpoints, pods, templates }: Owned) {
  const envs = [...endpoints, ...pods, ...templates].map(({ settings }) => settings.env);
  for (const endpoint of endpoints)
    for (const n of new Set([endpoint.version, servingVersion(endpoint)])) {
      if (turns.isOver) await turns.take(["changes"]);
      const release = await registry.release(endpoint.no, n);
      if (release) envs.push(release.settings.env, release.template.env);
    }
  return new Set(envs.flatMap(secretsNamed));
}
