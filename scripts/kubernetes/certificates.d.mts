/** Writes `home/NAME.kubeconfig` for a client of the API server at this port; returns its path. */
export function writeKubeconfig(
  home: string,
  name: string,
  client: { readonly api: number | string; readonly user: Readonly<Record<string, string>> },
): string;
