import { useState } from "react";

type Row = readonly [name: string, value: string];

/** Names with values, such as environment variables. */
export function Pairs({
  id,
  help,
  value,
  change,
}: {
  readonly id: string;
  readonly help: string;
  readonly value: Readonly<Record<string, string>>;
  readonly change: (value: Record<string, string>) => void;
}) {
  // kept apart: a name that is being typed may be empty, or be another's for a moment
  const [rows, setRows] = useState<readonly Row[]>(() => Object.entries(value));
  function set(next: readonly Row[]) {
    setRows(next);
    change(Object.fromEntries(next.filter(([name]) => name !== "")));
  }
  return (
    <fieldset className="pairs" id={id} aria-labelledby={`${id}-name`} aria-describedby={help}>
      {rows.map(([name, text], n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place, whatever is typed into it
        <div className="pair" key={n}>
          <input
            aria-label={`Name ${n + 1}`}
            placeholder="NAME"
            value={name}
            onChange={({ target }) => set(rows.with(n, [target.value, text]))}
          />
          <input
            aria-label={`Value of ${name || n + 1}`}
            placeholder="value"
            value={text}
            onChange={({ target }) => set(rows.with(n, [name, target.value]))}
          />
          <button type="button" className="small" onClick={() => set(rows.toSpliced(n, 1))}>
            Remove<span className="unseen"> {name}</span>
          </button>
        </div>
      ))}
      <button type="button" className="small" onClick={() => setRows([...rows, ["", ""]])}>
        Add one
      </button>
    </fieldset>
  );
}
