/** What a call of a public client does here. */
export type Outcome = "works" | { readonly refused: string } | { readonly missing: string };

export interface ClientTable {
  readonly client: string;
  readonly note: string;
  /** What else differs for this client on purpose, and why, beside the calls that are refused. */
  readonly differences?: Readonly<Record<string, string>>;
  readonly calls: Readonly<Record<string, Outcome>>;
}
