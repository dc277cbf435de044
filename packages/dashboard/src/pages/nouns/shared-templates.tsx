import type { Template } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Column, Table } from "../../parts/table.js";
import { listQuery, templatesQuery } from "../../queries.js";

/** The templates that other users share: for making endpoints, not for changing. */
export function SharedTemplates() {
  const { data: own } = useQuery(listQuery<Template>("/v1/templates"));
  const { data: all } = useQuery(templatesQuery);
  if (!own || !all) return null;
  const ids = new Set(own.map(({ id }) => id));
  const shared = all.filter(({ id }) => !ids.has(id));
  if (shared.length === 0) return null;
  return (
    <section aria-labelledby="shared">
      <h2 id="shared">Shared by other users</h2>
      <Table
        label="Templates of other users"
        rows={shared}
        columns={columns}
        keyOf={({ id }) => id}
        sortIn="sharedSort"
      />
    </section>
  );
}

const columns: readonly Column<Template>[] = [
  { title: "Name", of: ({ name }) => name, by: ({ name }) => name },
  { title: "Id", kind: "id", of: ({ id }) => id },
  { title: "Image", kind: "why", of: ({ imageName }) => imageName, by: ({ imageName }) => imageName },
  { title: "For", of: ({ isServerless }) => (isServerless ? "endpoints" : "pods") },
  {
    title: "Actions",
    of: ({ id, isServerless }) =>
      isServerless && (
        <Link to="/endpoints/new" search={{ template: id }} className="button small">
          New endpoint
        </Link>
      ),
  },
];
