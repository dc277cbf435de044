import { useId, useState } from "react";
import { Modal } from "./modal.js";
import { Trouble } from "./trouble.js";
import { useAction } from "./use-action.js";

/** A button for what cannot be taken back: it says what will be lost, and asks for the name. */
export function Confirm({
  verb,
  name,
  title = `${verb} ${name}?`,
  loss,
  act,
}: {
  readonly verb: string;
  readonly name: string;
  readonly title?: string;
  readonly loss: string;
  readonly act: () => Promise<unknown>;
}) {
  const [isOpen, setOpen] = useState(false);
  const [typed, setTyped] = useState("");
  const field = useId();
  const action = useAction(act, () => close());
  function close() {
    setOpen(false);
    setTyped("");
  }
  return (
    <>
      <button type="button" className="small danger" onClick={() => setOpen(true)}>
        {verb}
      </button>
      <Modal title={title} isOpen={isOpen} close={close}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            event.stopPropagation(); // a form around this button must not be submitted too
            action.run();
          }}
        >
          <p>{loss}</p>
          <label htmlFor={field}>
            Type <b>{name}</b> to go on
          </label>
          <input id={field} value={typed} onChange={({ target }) => setTyped(target.value)} autoComplete="off" />
          <Trouble error={action.error} />
          <p className="buttons">
            <button type="submit" className="danger" disabled={typed !== name || action.isBusy}>
              {verb}
            </button>
            <button type="button" onClick={close}>
              Keep it
            </button>
          </p>
        </form>
      </Modal>
    </>
  );
}
