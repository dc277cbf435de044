import {
  type ApiKey,
  ApiKeyCreate,
  ApiKeyUpdate,
  type KeyScope,
  type User,
  UserCreate,
  UserUpdate,
} from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useId, useMemo, useState } from "react";
import type { InputProps } from "../../parts/form/fields.js";
import { Modal } from "../../parts/modal.js";
import { Ago } from "../../parts/times.js";
import { Trouble } from "../../parts/trouble.js";
import { useAction } from "../../parts/use-action.js";
import { endpointsQuery, listQuery } from "../../queries.js";
import { send } from "../../session.js";
import { KeyRotation } from "./key-rotation.js";
import { NounPage, Once } from "./list.js";
import type { Noun } from "./noun.js";
import { UserDeletion } from "./user-deletion.js";

const scopeWords = (scope: KeyScope): string => {
  if (scope === "all") return "everything";
  if (scope === "read") return "reading";
  return scope.endpoints.map(({ id, access }) => `${id}: ${access}`).join(", ");
};

const keys = {
  one: "key",
  title: "API keys",
  path: "/v1/apikeys",
  columns: [
    { title: "Name", of: ({ name, id }) => name || id, by: ({ name }) => name },
    { title: "Begins with", kind: "id", of: ({ prefix }) => prefix },
    { title: "May", kind: "why", of: ({ scope }) => scopeWords(scope) },
    { title: "Used", of: ({ lastUsedAt }) => <Ago at={lastUsedAt} />, by: ({ lastUsedAt }) => lastUsedAt },
    { title: "Ends", of: ({ expiresAt }) => (expiresAt ? new Date(expiresAt).toLocaleString() : "never") },
    { title: "User", kind: "id", of: ({ userId }) => userId },
  ],
  empty: <p>No keys.</p>,
  create: {
    schema: ApiKeyCreate,
    defaults: { scope: "all" },
    once: { field: "key", words: "This is the key. It is shown once: keep it where only its user can read it." },
  },
  update: { schema: ApiKeyUpdate },
  controls: { scope: ScopeField },
  loss: () => "Calls with it are refused at once, and its open streams end within 5 seconds.",
  Actions: KeyRotation,
  Choice: WhoseKeys,
} satisfies Noun<ApiKey>;

/** Whose keys are listed: one's own, or, for an admin, another user's. */
function WhoseKeys() {
  const { user = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const { data: everyone = [] } = useQuery(listQuery<User>("/v1/users"));
  const field = useId();
  if (everyone.length < 2) return null;
  return (
    <p className="filters">
      <label htmlFor={field}>Keys of</label>
      <select
        id={field}
        value={user}
        onChange={({ target }) => void navigate({ to: "/keys", search: target.value ? { user: target.value } : {} })}
      >
        <option value="">yourself</option>
        {everyone.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
    </p>
  );
}

const users: Noun<User> = {
  one: "user",
  title: "Users",
  path: "/v1/users",
  columns: [
    { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
    { title: "Id", kind: "id", of: ({ id }) => id },
    { title: "Role", of: ({ role }) => role, by: ({ role }) => role },
    { title: "Spending limit", kind: "number", of: ({ spendLimit }) => spendLimit ?? "none" },
    { title: "Made", of: ({ createdAt }) => <Ago at={createdAt} />, by: ({ createdAt }) => createdAt },
  ],
  empty: <p>No users.</p>,
  create: {
    schema: UserCreate,
    defaults: { role: "member" },
    once: {
      field: "webhookSecret",
      words:
        "The user is made. This secret signs its webhooks; from now on only the user's own keys show it. Now make a key for the user.",
    },
  },
  update: { schema: UserUpdate },
  Deletion: UserDeletion,
  Actions: NewWebhookSecret,
};

function NewWebhookSecret({ resource: { id } }: { readonly resource: User }) {
  const rotate = useAction(() => send<{ webhookSecret: string }>("POST", `/v1/users/${id}/webhook-secret/rotate`));
  const verb = "New webhook secret";
  return (
    <>
      <button type="button" className="small" disabled={rotate.isBusy} onClick={rotate.run}>
        {verb}
      </button>
      <Trouble error={rotate.error} />
      <Modal title={verb} isOpen={rotate.result !== undefined} close={rotate.reset}>
        {rotate.result && (
          <Once
            words="This secret signs the user's webhooks from now on; later only the user's own keys show it. The old one also signs for one more day."
            text={rotate.result.webhookSecret}
            close={rotate.reset}
          />
        )}
      </Modal>
    </>
  );
}

type Chosen = { readonly id: string; readonly access: "read" | "run" };

/** What a key may do: everything, reading, or jobs of chosen endpoints. */
function ScopeField({ value, change, id, help }: InputProps) {
  const scope = value as KeyScope | undefined;
  const [kind, setKind] = useState(typeof scope === "object" ? "endpoints" : (scope ?? "all"));
  const chosen: readonly Chosen[] = typeof scope === "object" ? scope.endpoints : [];
  const { data: endpoints = [] } = useQuery(endpointsQuery);
  function choose(next: string) {
    setKind(next);
    change(next === "endpoints" ? { endpoints: [] } : next);
  }
  function set(endpointId: string, access: string) {
    const others = chosen.filter((each) => each.id !== endpointId);
    change({ endpoints: access === "" ? others : [...others, { id: endpointId, access }] });
  }
  return (
    <>
      <select id={id} aria-describedby={help} value={kind} onChange={({ target }) => choose(target.value)}>
        <option value="all">everything that its user may do</option>
        <option value="read">read everything that its user may read</option>
        <option value="endpoints">jobs of chosen endpoints</option>
      </select>
      {kind === "endpoints" && (
        <div className="group">
          {endpoints.map((endpoint) => (
            <label key={endpoint.id}>
              {endpoint.name}{" "}
              <select
                value={chosen.find((each) => each.id === endpoint.id)?.access ?? ""}
                onChange={({ target }) => set(endpoint.id, target.value)}
              >
                <option value="">nothing</option>
                <option value="read">read: status, stream, health, logs</option>
                <option value="run">run: also submit, cancel, retry, purge</option>
              </select>
            </label>
          ))}
        </div>
      )}
    </>
  );
}

/** The keys of the user that the address names, or one's own. A new key is the same user's. */
export function Keys() {
  const { user } = useSearch({ strict: false });
  const noun = useMemo(
    (): Noun<ApiKey> =>
      user === undefined
        ? keys
        : {
            ...keys,
            asks: `userId=${encodeURIComponent(user)}`,
            create: { ...keys.create, defaults: { ...keys.create.defaults, userId: user } },
          },
    [user],
  );
  return <NounPage noun={noun} />;
}

export const Users = () => <NounPage noun={users} />;
