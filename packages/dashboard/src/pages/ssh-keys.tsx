import type { v2 } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Loaded } from "../parts/loaded.js";
import { useSave } from "../parts/saves.js";
import { Trouble } from "../parts/trouble.js";
import { pageQuery } from "../queries.js";

const path = "/v2/account/ssh-keys";

/** The SSH keys that one's pods accept. */
export function SshKeys() {
  const query = useQuery(pageQuery<v2.SshKeys>(path));
  return (
    <section aria-labelledby="ssh-keys">
      <h2 id="ssh-keys">SSH keys</h2>
      <Loaded query={query} what="Your SSH keys" columns={1} rows={2}>
        {({ keys }) => <Form key={keys.join("\n")} kept={keys.join("\n")} />}
      </Loaded>
    </section>
  );
}

function Form({ kept }: { readonly kept: string }) {
  const [text, setText] = useState(kept);
  const field = useId();
  const help = useId();
  const keys = text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const save = useSave((send) => send("PUT", path, { keys }));
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      <div className="field">
        <label htmlFor={field}>public keys</label>
        <textarea
          id={field}
          aria-describedby={help}
          className="code"
          rows={4}
          spellCheck={false}
          placeholder="ssh-ed25519 AAAA… you@laptop"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
        <p id={help} className="note">
          One on each line, as in a .pub file. Pods that start from now on find them in PUBLIC_KEY, and let their owners
          in by SSH if their image serves it.
        </p>
      </div>
      <Trouble error={save.error} />
      <p className="buttons">
        <button type="submit" className="primary" disabled={keys.join("\n") === kept || save.isBusy}>
          Save
        </button>
      </p>
    </form>
  );
}
