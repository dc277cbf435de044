import type { ReleaseView } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Action } from "../../parts/action.js";
import { Changes } from "../../parts/form/changes.js";
import { Loaded } from "../../parts/loaded.js";
import { Cut } from "../../parts/pages.js";
import { type Column, Table } from "../../parts/table.js";
import { Ago } from "../../parts/times.js";
import { releasesQuery } from "../../queries.js";
import { send } from "../../session.js";

const route = getRouteApi("/frame/endpoints/$endpointId/releases");

/** How many the server keeps. */
const releasesKept = 50;

/** An endpoint's versions: what changed with each, how it went, and the way back. */
export function Releases() {
  const { endpointId } = route.useParams();
  const { version } = route.useSearch();
  const query = useQuery(releasesQuery(endpointId));
  return (
    <Loaded query={query} what="The releases" columns={5}>
      {(releases) => {
        const chosen = releases.find((each) => each.version === version) ?? releases[0];
        return (
          <>
            <Table
              label="Releases"
              rows={releases}
              columns={columnsOf(endpointId, releases[0]?.version)}
              keyOf={(each) => String(each.version)}
            />
            <Cut rows={releases.length} most={releasesKept} what="versions are kept" />
            {chosen && <Diff release={chosen} before={releases.find((each) => each.version === chosen.version - 1)} />}
          </>
        );
      }}
    </Loaded>
  );
}

const columnsOf = (endpointId: string, newest: number | undefined): readonly Column<ReleaseView>[] => [
  {
    title: "Version",
    of: ({ version }) => (
      <Link to="/endpoints/$endpointId/releases" params={{ endpointId }} search={(others) => ({ ...others, version })}>
        {version}
      </Link>
    ),
    by: ({ version }) => version,
  },
  { title: "State", of: ({ state, rollbackOf }) => `${state}${rollbackOf ? `, back to ${rollbackOf}` : ""}` },
  { title: "Made", of: ({ madeAt }) => <Ago at={madeAt} />, by: ({ madeAt }) => madeAt },
  { title: "Workers", kind: "number", of: ({ workers }) => workers },
  { title: "Image", kind: "why", of: ({ imageName }) => imageName },
  { title: "Why", kind: "why", of: ({ why }) => why },
  {
    title: "Roll back",
    of: ({ version }) =>
      version === newest ? (
        "newest"
      ) : (
        <Action
          verb={`Roll back to ${version}`}
          act={() => send("POST", `/v1/endpoints/${endpointId}/releases/${version}/rollback`)}
        />
      ),
  },
];

const compared = [
  "imageName",
  "templateId",
  "env",
  "dockerEntrypoint",
  "dockerStartCmd",
  "gpuTypeIds",
  "gpuCount",
  "computeType",
] as const;

const Diff = ({ release, before }: { readonly release: ReleaseView; readonly before: ReleaseView | undefined }) => (
  <section aria-labelledby="diff" className="panel">
    <h2 id="diff">
      {before ? `What version ${release.version} changed` : `Version ${release.version}, the first that is kept`}
    </h2>
    <Changes before={before ?? {}} after={release} names={compared} />
  </section>
);
