import { lazy, Suspense, useEffect, useState } from "react";
import type { Seen } from "../../queries.js";

const PaletteDialog = lazy(() => import("./palette-dialog.js").then((module) => ({ default: module.PaletteDialog })));
const KeysDialog = lazy(() => import("./keys-dialog.js").then((module) => ({ default: module.KeysDialog })));

const isTyping = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Goes to any endpoint, page or job, with ⌘K or Ctrl+K; `?` shows the keys, `/` goes to the page's filter. */
export function Palette({ endpoints }: { readonly endpoints: readonly Seen[] }) {
  const [open, setOpen] = useState<"palette" | "keys">();
  useEffect(() => {
    function press(event: KeyboardEvent) {
      if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        setOpen("palette");
      } else if (event.key === "?" && !isTyping(event.target)) setOpen("keys");
      else if (event.key === "/" && !isTyping(event.target)) {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (!filter) return;
        event.preventDefault();
        filter.focus();
      }
    }
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  const close = () => setOpen(undefined);
  return (
    <>
      <button type="button" className="find" onClick={() => setOpen("palette")}>
        <span>Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Suspense>
        {open === "palette" && <PaletteDialog endpoints={endpoints} close={close} />}
        {open === "keys" && <KeysDialog close={close} />}
      </Suspense>
    </>
  );
}
