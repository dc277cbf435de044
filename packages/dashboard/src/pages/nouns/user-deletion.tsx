import type { User } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Modal } from "../../parts/modal.js";
import { Trouble } from "../../parts/trouble.js";
import { useAction } from "../../parts/use-action.js";
import { listQuery } from "../../queries.js";
import { send } from "../../session.js";

/** Deletes a user: what it owns goes to another one, or with it. */
export function UserDeletion({ resource: { id, name } }: { readonly resource: User }) {
  const [isOpen, setOpen] = useState(false);
  const [heir, setHeir] = useState("");
  const [typed, setTyped] = useState("");
  const { data: users = [] } = useQuery(listQuery<User>("/v1/users"));
  const fields = { heir: useId(), name: useId() };
  const fate = heir === "" ? "deleteResources=true" : `transferTo=${heir}`;
  const remove = useAction(
    () => send("DELETE", `/v1/users/${id}?${fate}`),
    () => setOpen(false),
  );
  return (
    <>
      <button type="button" className="small danger" onClick={() => setOpen(true)}>
        Delete
      </button>
      <Modal title={`Delete ${name}?`} isOpen={isOpen} close={() => setOpen(false)}>
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            remove.run();
          }}
        >
          <p>Its keys stop working at once.</p>
          <label htmlFor={fields.heir}>What it owns (endpoints, templates, volumes, pods, secrets)</label>
          <select id={fields.heir} value={heir} onChange={({ target }) => setHeir(target.value)}>
            <option value="">is deleted with it</option>
            {users
              .filter((user) => user.id !== id)
              .map((user) => (
                <option key={user.id} value={user.id}>
                  goes to {user.name}
                </option>
              ))}
          </select>
          <label htmlFor={fields.name}>
            Type <b>{name}</b> to go on
          </label>
          <input id={fields.name} value={typed} autoComplete="off" onChange={({ target }) => setTyped(target.value)} />
          <Trouble error={remove.error} />
          <p className="buttons">
            <button type="submit" className="danger" disabled={typed !== name || remove.isBusy}>
              Delete
            </button>
            <button type="button" onClick={() => setOpen(false)}>
              Keep it
            </button>
          </p>
        </form>
      </Modal>
    </>
  );
}
