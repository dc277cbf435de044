import { getRouteApi } from "@tanstack/react-router";
import { Log } from "../../parts/story/log.js";

const route = getRouteApi("/frame/endpoints/$endpointId/logs");

/** What all of an endpoint's workers print, together, as it comes. */
export function Logs() {
  const { endpointId } = route.useParams();
  return (
    <div className="whole-log">
      <Log
        path={`/v1/endpoints/${endpointId}/logs?follow=true`}
        label="Log of all workers"
        empty="Nothing yet. What the handler prints appears here while its workers run, and for a day after."
      />
    </div>
  );
}
