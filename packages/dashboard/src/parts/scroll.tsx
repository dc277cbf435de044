import type { ReactNode } from "react";

/** What may be wider than the page: it scrolls by itself, by keyboard too. */
export const Scroll = ({ label, children }: { readonly label: string; readonly children: ReactNode }) => (
  // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
  <div className="table-room" role="group" aria-label={label} tabIndex={0}>
    {children}
  </div>
);
