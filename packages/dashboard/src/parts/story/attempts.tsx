import type { Delivery } from "../../queries.js";
import { send } from "../../session.js";
import { Action } from "../action.js";
import { Ago } from "../times.js";

/** One delivery of a webhook: each attempt, and the button that sends it again. */
export const Attempts = ({ delivery }: { readonly delivery: Delivery }) => (
  <div className="panel">
    <p className="buttons">
      <b>{delivery.state}</b>
      {delivery.nextAttemptAt && (
        <span className="note">next attempt {new Date(delivery.nextAttemptAt).toLocaleTimeString()}</span>
      )}
      <Action verb="Send again" act={() => send("POST", `/v1/webhooks/deliveries/${delivery.id}/redeliver`)} />
    </p>
    <ol className="attempts">
      {delivery.attempts.map(({ at, status, error, durationMs, reply }) => (
        <li key={at}>
          <Ago at={at} />: {status === undefined ? error : `${status}${error ? `, ${error}` : ""}`} in {durationMs} ms
          {reply && <pre>{reply}</pre>}
        </li>
      ))}
    </ol>
  </div>
);
