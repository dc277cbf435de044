import { useSyncExternalStore } from "react";

function watch(changed: () => void): () => void {
  document.addEventListener("visibilitychange", changed);
  return () => document.removeEventListener("visibilitychange", changed);
}

/** Whether this tab can be seen. */
export const useVisible = (): boolean => useSyncExternalStore(watch, () => document.visibilityState === "visible");
