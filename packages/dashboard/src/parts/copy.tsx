import { useState } from "react";

/** Copies a text, and says so for a moment. */
export function Copy({ text, what = "Copy" }: { readonly text: string | (() => string); readonly what?: string }) {
  const [isCopied, setCopied] = useState(false);
  async function copy() {
    await navigator.clipboard.writeText(typeof text === "string" ? text : text());
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  }
  // without https the browser has no clipboard to offer
  if (!window.isSecureContext) return null;
  return (
    <button type="button" className="small" onClick={() => void copy()}>
      {isCopied ? "Copied" : what}
    </button>
  );
}

/** A command or snippet to paste. */
export const Snippet = ({ text }: { readonly text: string }) => (
  <div className="snippet">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <Copy text={text} />
  </div>
);
