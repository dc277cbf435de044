/** What was looked at, and how it is. */
export interface Finding {
  readonly what: string;
  /** `fine`; `missing`, which something that people may want needs; or `wrong`, which nothing works without. */
  readonly is: "fine" | "missing" | "wrong";
  readonly words: string;
  /** The command that mends it. */
  readonly mend?: string;
}
