import type { HealthBody } from "@millrace/api";

/** An endpoint's state in one dot, with its words for screen readers. */
export function Dot({ health }: { readonly health: HealthBody | undefined }) {
  const [state, words] = stateOf(health);
  return <span className={`dot ${state}`} role="img" aria-label={words} title={words} />;
}

function stateOf(health: HealthBody | undefined): [string, string] {
  if (!health) return ["unknown", "state not known yet"];
  const { jobs, workers } = health;
  if (workers.unhealthy > 0) return ["trouble", "workers fail"];
  if (jobs.inProgress > 0) return ["running", `${jobs.inProgress} running`];
  if (jobs.inQueue > 0) return ["waiting", `${jobs.inQueue} waiting`];
  if (workers.ready > 0) return ["ready", "ready"];
  return ["idle", "no workers now"];
}
