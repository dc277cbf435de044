/** A cluster that a server reaches: the name that its settings have for it, and its host's number. */
export interface NamedCluster {
  readonly name: string;
  readonly no: number;
}

/**
 * Says that two servers do not have the same clusters in the same order; undefined if they do. A server without any
 * leaves them to the others, but of several it does not know which comes first.
 */
export function unlikeClusters(
  ours: readonly NamedCluster[],
  theirs: readonly NamedCluster[],
  them: string,
): string | undefined {
  if (Math.min(ours.length, theirs.length) === 0 && Math.max(ours.length, theirs.length) < 2) return undefined;
  const isSame = ours.length === theirs.length && ours.every(({ no }, at) => no === theirs[at]?.no);
  const [here, there] = [namesOf(ours), namesOf(theirs)];
  if (isSame && here === there) return undefined;
  const unlike =
    here === there
      ? `the clusters ${here} are not the same ones here and on ${them}`
      : `the clusters of this server are ${here}, and those of ${them} are ${there}`;
  return `${unlike}: all servers need the same list (MILLRACE_KUBERNETES_CONTEXT), or it depends on the server where workers run and which network volume they have`;
}

const namesOf = (clusters: readonly NamedCluster[]): string => clusters.map(({ name }) => name).join(", ") || "none";
