/** One connection, as statements see it. */
export interface Connection {
  query<Row>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}
