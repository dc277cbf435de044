import { Autocomplete } from "@base-ui/react/autocomplete";
import { Dialog } from "@base-ui/react/dialog";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { findJob } from "../../find-job.js";
import { places } from "../../places.js";
import type { Seen } from "../../queries.js";

interface Item {
  readonly value: string;
  readonly about: string;
  readonly href: string;
}

const shownMax = 50;

/** Endpoints and pages by their names, and jobs by their ids. */
export function PaletteDialog({
  endpoints,
  close,
}: {
  readonly endpoints: readonly Seen[];
  readonly close: () => void;
}) {
  const [typed, setTyped] = useState("");
  const [trouble, setTrouble] = useState("");
  const navigate = useNavigate();
  const items = useMemo(() => itemsOf(endpoints), [endpoints]);

  function go(href: string) {
    close();
    void navigate({ href });
  }
  async function goToJob() {
    const found = await findJob(endpoints, typed.trim());
    if (found) go(found);
    else setTrouble("No endpoint here knows this job: it may have been deleted.");
  }

  return (
    <Dialog.Root open onOpenChange={(open) => open || close()}>
      <Dialog.Portal>
        <Dialog.Backdrop className="backdrop" />
        <Dialog.Popup className="palette" aria-label="Go to">
          <Autocomplete.Root
            open
            inline
            items={items}
            limit={shownMax}
            value={typed}
            onValueChange={setTyped}
            autoHighlight="always"
            keepHighlight
          >
            <Autocomplete.Input aria-label="Endpoint, page or job" placeholder="An endpoint, a page, a job's id…" />
            <Autocomplete.Empty>
              {typed !== "" && (
                <span className="buttons">
                  <button type="button" onClick={() => void goToJob()}>
                    Look for a job with this id
                  </button>
                </span>
              )}
            </Autocomplete.Empty>
            {trouble && (
              <p role="alert" className="trouble">
                {trouble}
              </p>
            )}
            <Autocomplete.List className="palette-list">
              {(item: Item) => (
                <Autocomplete.Item key={item.href} value={item} className="palette-item" onClick={() => go(item.href)}>
                  <span>{item.value}</span>
                  <span className="note">{item.about}</span>
                </Autocomplete.Item>
              )}
            </Autocomplete.List>
          </Autocomplete.Root>
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function itemsOf(endpoints: readonly Seen[]): Item[] {
  return [
    ...endpoints.map(({ id, name }) => ({ value: name, about: `endpoint ${id}`, href: `/endpoints/${id}` })),
    ...places.map(({ to, title, about }) => ({ value: title, about, href: to })),
  ];
}
