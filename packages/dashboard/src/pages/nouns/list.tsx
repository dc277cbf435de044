import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useRouterState, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { Confirm } from "../../parts/confirm.js";
import { Copy } from "../../parts/copy.js";
import { Changes } from "../../parts/form/changes.js";
import { Fields } from "../../parts/form/fields.js";
import { changesOf, fieldsOf, filled, type Values } from "../../parts/form/schema.js";
import { Loaded } from "../../parts/loaded.js";
import { Modal } from "../../parts/modal.js";
import { useSave } from "../../parts/saves.js";
import { type Column, Table } from "../../parts/table.js";
import { Trouble } from "../../parts/trouble.js";
import { listQuery } from "../../queries.js";
import { send } from "../../session.js";
import type { Noun, Resource } from "./noun.js";

/** The page of one kind of resource: its list, and, above it, the form of a new or an open one. What is open is in the URL. */
export function NounPage<T extends Resource>({ noun }: { readonly noun: Noun<T> }) {
  const { open } = useSearch({ strict: false });
  const navigate = useNavigate();
  const here = useRouterState({ select: ({ location }) => location.pathname });
  const query = useQuery(listQuery<T>(noun.asks ? `${noun.path}?${noun.asks}` : noun.path));
  const columns = useMemo(() => columnsOf(noun, here), [noun, here]);
  const close = () => void navigate({ to: here, search: ({ open: _, ...others }) => others });
  const opened = query.data?.find(({ id }) => id === open);
  return (
    <>
      <title>{`${noun.title} · Millrace`}</title>
      <header className="page-head">
        <h1>{noun.title}</h1>
        {noun.create && (
          <Link to={here} search={(others) => ({ ...others, open: "new" })} className="button primary">
            New {noun.one}
          </Link>
        )}
      </header>
      {noun.Choice && <noun.Choice />}
      <Loaded query={query} what={noun.title} columns={noun.columns.length}>
        {(all) =>
          all.length === 0 ? (
            <section className="empty">{noun.empty}</section>
          ) : (
            <Table label={noun.title} rows={all} columns={columns} keyOf={({ id }) => id} />
          )
        }
      </Loaded>
      {noun.Below && <noun.Below />}
      {noun.create && (
        <Modal title={`New ${noun.one}`} isOpen={open === "new"} close={close}>
          {open === "new" && <Creation noun={noun} close={close} />}
        </Modal>
      )}
      <Modal title={opened?.name || opened?.id || noun.one} isOpen={opened !== undefined} close={close}>
        {opened && <Opened key={opened.id} noun={noun} resource={opened} close={close} />}
      </Modal>
    </>
  );
}

function columnsOf<T extends Resource>(noun: Noun<T>, here: string): readonly Column<T>[] {
  const [first, ...rest] = noun.columns;
  const { Actions, Deletion } = noun;
  const opens = noun.update !== undefined || noun.More !== undefined;
  const named: Column<T> = {
    ...(first as Column<T>),
    of: (resource) =>
      opens ? (
        <Link to={here} search={(others) => ({ ...others, open: resource.id })}>
          {(first as Column<T>).of(resource)}
        </Link>
      ) : (
        (first as Column<T>).of(resource)
      ),
  };
  const acts: Column<T> = {
    title: "Actions",
    of: (resource) => (
      <span className="buttons">
        {Actions && <Actions resource={resource} />}
        {Deletion && <Deletion resource={resource} />}
        {noun.loss && (
          <Confirm
            verb="Delete"
            name={resource.name || resource.id}
            loss={noun.loss(resource)}
            act={() => send("DELETE", `${noun.path}/${resource.id}`)}
          />
        )}
      </span>
    ),
  };
  return [named, ...rest, ...(Actions || Deletion || noun.loss ? [acts] : [])];
}

function Creation<T extends Resource>({ noun, close }: { readonly noun: Noun<T>; readonly close: () => void }) {
  const { schema, names, defaults = {}, once } = noun.create as NonNullable<Noun<T>["create"]>;
  const fields = fieldsOf(schema, names);
  const [values, setValues] = useState<Values>(defaults);
  const create = useSave(
    (send) => send<Record<string, unknown>>("POST", noun.path, filled(values)),
    () => once ?? close(),
  );
  if (once && create.result) return <Once words={once.words} text={String(create.result[once.field])} close={close} />;
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        create.run();
      }}
    >
      <Fields fields={fields} values={values} change={setValues} controls={noun.controls} />
      <Trouble error={create.error} />
      <p className="buttons">
        <button type="submit" className="primary" disabled={create.isBusy}>
          Create
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </p>
    </form>
  );
}

/** Something that is shown once. */
export const Once = ({
  words,
  text,
  close,
}: {
  readonly words: string;
  readonly text: string;
  readonly close: () => void;
}) => (
  <div className="stack">
    <p>{words}</p>
    <p className="snippet">
      <code className="once">{text}</code>
      <Copy text={text} />
    </p>
    <p className="buttons">
      <button type="button" className="primary" onClick={close}>
        I have kept it
      </button>
    </p>
  </div>
);

interface OpenedProps<T extends Resource> {
  readonly noun: Noun<T>;
  readonly resource: T;
  readonly close: () => void;
}

function Opened<T extends Resource>({ noun, resource, close }: OpenedProps<T>) {
  const { More, update } = noun;
  return (
    <>
      <p className="note id">{resource.id}</p>
      {More && <More resource={resource} />}
      {update && <Update noun={noun} resource={resource} close={close} />}
    </>
  );
}

function Update<T extends Resource>({ noun, resource, close }: OpenedProps<T>) {
  const { schema, names } = noun.update as NonNullable<Noun<T>["update"]>;
  const fields = fieldsOf(schema, names);
  const [before] = useState(resource as unknown as Values);
  const [values, setValues] = useState<Values>(before);
  const changes = changesOf(fields, before, values);
  const changed = Object.keys(changes);
  const save = useSave((send) => send("PATCH", `${noun.path}/${resource.id}`, changes), close);
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      <Fields fields={fields} values={values} change={setValues} controls={noun.controls} />
      {changed.length > 0 && <Changes before={before} after={values} names={changed} />}
      <Trouble error={save.error} />
      <p className="buttons">
        <button type="submit" className="primary" disabled={changed.length === 0 || save.isBusy}>
          Save
        </button>
        <button type="button" onClick={close}>
          Close
        </button>
      </p>
    </form>
  );
}
