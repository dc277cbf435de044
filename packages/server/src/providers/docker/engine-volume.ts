/** The name of a container engine's own volume that stands for one of ours. */
export const engineVolume = (id: string): string => `millrace-${id}`;

/** The id of the volume, a network volume or a pod's own, that an engine's volume stands for; undefined for all others. */
export const networkVolume = (name: string): string | undefined => /^millrace-((?:pod-)?[a-z0-9]{14})$/.exec(name)?.[1];
