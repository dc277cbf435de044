import type { ReactNode } from "react";
import type { Controls } from "../../parts/form/fields.js";
import type { Values } from "../../parts/form/schema.js";
import type { Column } from "../../parts/table.js";

/** What every resource has. */
export interface Resource {
  readonly id: string;
  readonly name?: string;
}

/** A kind of resource: how it is listed, made, changed and deleted. */
export interface Noun<T extends Resource> {
  /** One of them, as in "New secret". */
  readonly one: string;
  readonly title: string;
  readonly path: string;
  /** What the list asks for, in a query; absent if nothing. */
  readonly asks?: string;
  /** What is chosen above the list. */
  readonly Choice?: () => ReactNode;
  readonly columns: readonly Column<T>[];
  /** What they are for, and what fills the list. */
  readonly empty: ReactNode;
  readonly create?: {
    readonly schema: object;
    readonly names?: readonly string[];
    readonly defaults?: Values;
    /** What the reply shows once and never again. */
    readonly once?: { readonly field: string; readonly words: string };
  };
  readonly update?: { readonly schema: object; readonly names?: readonly string[] };
  readonly controls?: Controls;
  /** What is lost with one; absent if none can be deleted. */
  readonly loss?: (resource: T) => string;
  /** A deletion that asks for more than the name. */
  readonly Deletion?: (props: { readonly resource: T }) => ReactNode;
  /** What else can be done with one, beside its row. */
  readonly Actions?: (props: { readonly resource: T }) => ReactNode;
  /** What stands below the list. */
  readonly Below?: () => ReactNode;
  /** What else is shown of one that is open. */
  readonly More?: (props: { readonly resource: T }) => ReactNode;
}
