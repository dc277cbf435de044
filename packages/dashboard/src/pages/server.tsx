import type { User } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { Loaded } from "../parts/loaded.js";
import { listQuery, pageQuery } from "../queries.js";
import { SshKeys } from "./ssh-keys.js";

interface Health {
  readonly status: string;
  readonly version?: string;
  readonly commit?: string;
  readonly runtime?: string;
  readonly uptimeSeconds?: number;
}

/** What serves this page, whose key is signed in, and where the rest is set. */
export function Server() {
  const health = useQuery(pageQuery<Health>("/healthz"));
  const users = useQuery(listQuery<User>("/v1/users"));
  return (
    <>
      <title>Server · Millrace</title>
      <header className="page-head">
        <h1>Server</h1>
      </header>
      <Loaded query={health} what="This server" columns={2} rows={3}>
        {(data) => <Facts of={data} />}
      </Loaded>
      <h2>You</h2>
      <Loaded query={users} what="Your user" columns={2} rows={2}>
        {(all) => (
          <p>
            {all.length === 1
              ? `Your key is one of ${all[0]?.name}'s (${all[0]?.role}).`
              : `Your key is an admin's: it sees all ${all.length} users.`}
          </p>
        )}
      </Loaded>
      <SshKeys />
      <h2>Settings</h2>
      <p>
        The server reads its settings from environment variables (MILLRACE_…) when it starts.{" "}
        <a href="/docs/guide/reference/settings">The reference</a> lists them with their defaults, and{" "}
        <code>npx millrace doctor</code> checks the machine.
      </p>
      <h2>API</h2>
      <p>
        <a href="/docs">Every operation, to read and to try</a>, and as documents:{" "}
        <a href="/v1/openapi.json">REST v1</a>, <a href="/v2/openapi.json">queue and REST v2</a>.
      </p>
    </>
  );
}

const Facts = ({ of }: { readonly of: Health }) => (
  <dl className="facts">
    {Object.entries(of)
      .filter(([, value]) => typeof value !== "object")
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{String(value)}</dd>
        </div>
      ))}
  </dl>
);
