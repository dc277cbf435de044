import { type ComponentType, useId } from "react";
import { Pairs } from "./pairs.js";
import { type Field, isSecret, type Values } from "./schema.js";

/** Controls of their own for fields that no schema describes well enough, by name. */
export type Controls = Readonly<Record<string, ComponentType<InputProps>>>;

/** The fields of a form, each explained where it stands. */
export const Fields = ({
  fields,
  values,
  change,
  controls = {},
}: {
  readonly fields: readonly Field[];
  readonly values: Values;
  readonly change: (values: Values) => void;
  readonly controls?: Controls | undefined;
}) =>
  fields.map((field) => (
    <Control
      key={field.name}
      field={field}
      value={values[field.name]}
      change={(value) => change({ ...values, [field.name]: value })}
      of={controls[field.name] ?? Input}
    />
  ));

interface ControlProps {
  readonly field: Field;
  readonly value: unknown;
  readonly change: (value: unknown) => void;
}

export interface InputProps extends ControlProps {
  readonly id: string;
  /** The id of what explains it. */
  readonly help: string;
}

function Control({ of: Chosen, ...props }: ControlProps & { readonly of: ComponentType<InputProps> }) {
  const { field } = props;
  const id = useId();
  const help = `${id}-help`;
  return (
    <div className="field">
      {field.kind === "pairs" || field.kind === "group" ? (
        <span id={`${id}-name`} className="name">
          {field.name}
        </span>
      ) : (
        <label htmlFor={id}>
          {field.name}
          {field.isRequired && <span className="note"> required</span>}
        </label>
      )}
      <Chosen {...props} id={id} help={help} />
      <p id={help} className="note">
        {field.help}
        {boundsOf(field)}
      </p>
    </div>
  );
}

function boundsOf({ minimum, maximum }: Field): string {
  if (minimum !== undefined && maximum !== undefined) return ` From ${minimum} to ${maximum}.`;
  return minimum === undefined ? "" : ` At least ${minimum}.`;
}

/** The usual control of a field. */
export function Input({ field, value, change, id, help }: InputProps) {
  const shared = { id, "aria-describedby": help, required: field.isRequired };
  const text = value === undefined || value === null ? "" : String(value);
  switch (field.kind) {
    case "number":
      return (
        <input
          {...shared}
          type="number"
          step={field.isWhole ? 1 : "any"}
          min={field.minimum}
          max={field.maximum}
          value={text}
          onChange={({ target }) => change(target.value === "" ? undefined : Number(target.value))}
        />
      );
    case "switch":
      return (
        <input
          {...shared}
          required={false}
          type="checkbox"
          checked={value === true}
          onChange={({ target }) => change(target.checked)}
        />
      );
    case "choice":
      return (
        <select {...shared} value={text} onChange={({ target }) => change(target.value || undefined)}>
          <option value="">–</option>
          {field.choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      );
    case "list":
      return (
        <textarea
          {...shared}
          rows={2}
          placeholder="one per line"
          value={Array.isArray(value) ? value.join("\n") : ""}
          onChange={({ target }) => change(target.value === "" ? [] : target.value.split("\n"))}
        />
      );
    case "pairs":
      return <Pairs id={id} help={help} value={(value ?? {}) as Record<string, string>} change={change} />;
    case "group":
      return (
        <fieldset id={id} aria-labelledby={`${id}-name`} aria-describedby={help} className="group">
          <Fields fields={field.fields} values={(value ?? {}) as Values} change={change} />
        </fieldset>
      );
    default:
      return (
        <input
          {...shared}
          type={isSecret(field.name) ? "password" : "text"}
          autoComplete="off"
          value={text}
          onChange={({ target }) => change(target.value)}
        />
      );
  }
}
