import { useRouterState } from "@tanstack/react-router";
import { createContext, type ReactNode, use, useCallback, useEffect, useState } from "react";
import { type Send, sender } from "../session.js";
import { useAction } from "./use-action.js";

const Report = createContext<(text: string | undefined) => void>(() => {});

/** Reports the last save beside the page that `children` show, until it is dismissed, the next save, or another page. */
export function Saves({ children }: { readonly children: ReactNode }) {
  const [said, setSaid] = useState<{ readonly text: string; readonly path: string }>();
  const path = useRouterState({ select: ({ location }) => location.pathname });
  const report = useCallback(
    (text: string | undefined) => setSaid(text === undefined ? undefined : { text, path: location.pathname }),
    [],
  );
  useEffect(() => setSaid((last) => (last?.path === path ? last : undefined)), [path]);
  return (
    <Report value={report}>
      {children}
      {/* always there: screen readers announce what changes in a region that they know */}
      <div role="status" className="saves">
        {said?.path === path && (
          <p>
            <span>{said.text}</span>
            <button type="button" className="small" onClick={() => setSaid(undefined)}>
              Dismiss
            </button>
          </p>
        )}
      </div>
    </Report>
  );
}

/** An action that saves what a form holds. Afterwards the page says so, and names the fields that had no effect. */
export function useSave<T>(save: (send: Send) => Promise<T>, done?: (result: T) => void) {
  const report = use(Report);
  return useAction(async () => {
    const ignored: string[] = [];
    report(undefined);
    const result = await save(sender((fields) => ignored.push(fields)));
    report(ignored.length === 0 ? "Saved." : `Saved. Without effect here: ${[...new Set(ignored)].join(", ")}`);
    return result;
  }, done);
}
