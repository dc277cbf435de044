/** What a call of a public client does here. */
export type Outcome = "works" | { readonly refused: string } | { readonly missing: string };

export interface ClientTable {
  readonly client: string;
  readonly note: string;
  readonly calls: Readonly<Record<string, Outcome>>;
}
