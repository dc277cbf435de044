/** Where workers run: on the servers' own machines, or in a cluster. */
export type Place = "machines" | "cluster";

/** Where an endpoint wants them: in any place of this sort, or in the cluster of this name. */
export type WantedPlace = Place | `cluster/${string}`;

/** The name of the cluster that is wanted; undefined if any will do, or none is. */
export const wantedCluster = (place: WantedPlace): string | undefined =>
  place.startsWith("cluster/") ? place.slice("cluster/".length) : undefined;
