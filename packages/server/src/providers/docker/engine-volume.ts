/** The name of a container engine's own volume that stands for a network volume. */
export const engineVolume = (id: string): string => `millrace-${id}`;

/** The id of the network volume that an engine's volume stands for; undefined for all others. */
export const networkVolume = (name: string): string | undefined => /^millrace-([a-z0-9]{14})$/.exec(name)?.[1];
