import { useQuery } from "@tanstack/react-query";
import { type Delivery, deliveryQuery } from "../../queries.js";
import { send } from "../../session.js";
import { Action } from "../action.js";
import { Ago } from "../times.js";

/** One delivery of a webhook: each attempt with its answer, which lists leave out, and the button that sends it again. */
export function Attempts({ delivery: listed }: { readonly delivery: Delivery }) {
  const wasAnswered = listed.attempts.some(({ status }) => status !== undefined);
  const { data: delivery = listed } = useQuery({ ...deliveryQuery(listed.id), enabled: wasAnswered });
  return (
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
}
