import type { ApiKey } from "@millrace/api";
import { useId, useState } from "react";
import { Modal } from "../../parts/modal.js";
import { Trouble } from "../../parts/trouble.js";
import { useAction } from "../../parts/use-action.js";
import { keyOfSession, send, signIn } from "../../session.js";
import { Once } from "./list.js";

const daySeconds = 86_400;

/** Replaces a key's text, and says how long the old one works. The page goes on with the new one if it was its own. */
export function KeyRotation({ resource: { id, name, prefix } }: { readonly resource: ApiKey }) {
  const [isOpen, setOpen] = useState(false);
  const [overlapSeconds, setOverlap] = useState(daySeconds);
  const field = useId();
  const rotate = useAction(async () => {
    const { key } = await send<{ key: string }>("POST", `/v1/apikeys/${id}/rotate`, { overlapSeconds });
    if (keyOfSession()?.startsWith(prefix)) await signIn(key);
    return key;
  });
  function close() {
    setOpen(false);
    rotate.reset();
  }
  return (
    <>
      <button type="button" className="small" onClick={() => setOpen(true)}>
        Rotate
      </button>
      <Modal title={`Rotate ${name || id}?`} isOpen={isOpen} close={close}>
        {rotate.result ? (
          <Once
            words={`This is the new key, and it is shown once. ${overlapSeconds > 0 ? "The old one works for one more day." : "The old one has ended."}`}
            text={rotate.result}
            close={close}
          />
        ) : (
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              rotate.run();
            }}
          >
            <label htmlFor={field}>The old key</label>
            <select id={field} value={overlapSeconds} onChange={({ target }) => setOverlap(Number(target.value))}>
              <option value={daySeconds}>works for one more day</option>
              <option value={0}>ends at once</option>
            </select>
            <Trouble error={rotate.error} />
            <p className="buttons">
              <button type="submit" className="primary" disabled={rotate.isBusy}>
                Rotate
              </button>
              <button type="button" onClick={close}>
                Cancel
              </button>
            </p>
          </form>
        )}
      </Modal>
    </>
  );
}
