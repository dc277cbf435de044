import { type Endpoint, EndpointCreate, type Template } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useId, useState } from "react";
import { catalogControls } from "../parts/form/catalog.js";
import { Fields, type InputProps } from "../parts/form/fields.js";
import { fieldsOf, filled, type Values } from "../parts/form/schema.js";
import { Loaded } from "../parts/loaded.js";
import { useSave } from "../parts/saves.js";
import { Trouble } from "../parts/trouble.js";
import { templatesQuery } from "../queries.js";
import type { Send } from "../session.js";

/** What most endpoints need; everything else stands below it. */
const first = [
  "templateId",
  "name",
  "type",
  "computeType",
  "gpuTypeIds",
  "gpuCount",
  "workersMin",
  "workersMax",
  "idleTimeout",
];
// without a template, one is made
const firstFields = fieldsOf(EndpointCreate, first).map((field) => ({ ...field, isRequired: false }));
const otherFields = fieldsOf(EndpointCreate).filter(({ name }) => !first.includes(name));

/** Makes an endpoint from a template, or from an image or folder that is named here. */
export function NewEndpoint() {
  const templates = useQuery(templatesQuery);
  return (
    <>
      <title>New endpoint · Millrace</title>
      <header className="page-head">
        <h1>New endpoint</h1>
      </header>
      <Loaded query={templates} what="The templates" columns={2}>
        {(all) => <Form hasTemplates={all.some(({ isServerless }) => isServerless)} />}
      </Loaded>
    </>
  );
}

function Form({ hasTemplates }: { readonly hasTemplates: boolean }) {
  const navigate = useNavigate();
  const { template } = useSearch({ from: "/frame/endpoints/new" });
  const [values, setValues] = useState<Values>({
    ...(template && { templateId: template }),
    computeType: "CPU",
    type: "QB",
    workersMin: 0,
    workersMax: 3,
    idleTimeout: 5,
  });
  const [image, setImage] = useState("");
  const field = useId();
  const create = useSave(async (send) => {
    const templateId = values.templateId || (await templateOf(send, image, String(values.name ?? "")));
    const { id } = await send<Endpoint>("POST", "/v1/endpoints", filled({ ...values, templateId }));
    await navigate({ to: "/endpoints/$endpointId/try", params: { endpointId: id } });
  });
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        create.run();
      }}
    >
      {!values.templateId && (
        <div className="field">
          <label htmlFor={field}>image or folder</label>
          <input id={field} value={image} autoComplete="off" onChange={({ target }) => setImage(target.value)} />
          <p className="note">
            A container image, or a folder on the server's machine with a handler in it. A template is made of it
            {hasTemplates ? ", unless you choose one below." : "."}
          </p>
        </div>
      )}
      <Fields
        fields={firstFields}
        values={values}
        change={setValues}
        controls={{ ...catalogControls, templateId: TemplateField }}
      />
      <details>
        <summary>Everything else</summary>
        <Fields fields={otherFields} values={values} change={setValues} controls={catalogControls} />
      </details>
      <Trouble error={create.error} />
      <p className="buttons">
        <button type="submit" className="primary" disabled={create.isBusy || (!values.templateId && image === "")}>
          Create
        </button>
        <Link to="/" className="button">
          Cancel
        </Link>
      </p>
    </form>
  );
}

async function templateOf(send: Send, imageName: string, name: string): Promise<string> {
  const body = {
    name: `${name || "endpoint"} ${new Date().toISOString().slice(0, 19)}`,
    imageName,
    isServerless: true,
  };
  return (await send<Template>("POST", "/v1/templates", body)).id;
}

function TemplateField({ value, change, id, help }: InputProps) {
  const { data: templates = [] } = useQuery(templatesQuery);
  return (
    <select
      id={id}
      aria-describedby={help}
      value={String(value ?? "")}
      onChange={({ target }) => change(target.value || undefined)}
    >
      <option value="">a new one, from the image or folder above</option>
      {templates
        .filter(({ isServerless }) => isServerless)
        .map((template) => (
          <option key={template.id} value={template.id}>
            {template.name} ({template.imageName})
          </option>
        ))}
    </select>
  );
}
