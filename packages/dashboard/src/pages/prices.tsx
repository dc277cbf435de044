import type { Prices } from "@millrace/api";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Loaded } from "../parts/loaded.js";
import { useSave } from "../parts/saves.js";
import { Trouble } from "../parts/trouble.js";
import { pageQuery } from "../queries.js";

const others = [
  ["vcpu", "one virtual processor"],
  ["memoryGb", "one GB of memory"],
  ["volumeGb", "one GB of a network volume"],
] as const;

/** What an hour of each thing costs. Admins set it; without prices every cost is 0. */
export function PriceList() {
  const query = useQuery(pageQuery<Prices>("/v1/prices"));
  return (
    <section aria-labelledby="prices">
      <h2 id="prices">Prices</h2>
      <p className="note">
        Per hour, in a currency of your choice. Only admins set prices. A new price applies to what runs from then on.
      </p>
      <Loaded query={query} what="The prices" columns={2} rows={3}>
        {(prices) => <Form key={JSON.stringify(prices)} prices={prices} />}
      </Loaded>
    </section>
  );
}

function Form({ prices }: { readonly prices: Prices }) {
  const [gpus, setGpus] = useState<readonly (readonly [string, number])[]>(Object.entries(prices.gpus));
  const [rest, setRest] = useState(prices);
  const save = useSave((send) =>
    send("PUT", "/v1/prices", { ...rest, gpus: Object.fromEntries(gpus.filter(([name]) => name !== "")) }),
  );
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.run();
      }}
    >
      {others.map(([name, words]) => (
        <Price key={name} words={words} value={rest[name]} change={(value) => setRest({ ...rest, [name]: value })} />
      ))}
      <fieldset className="pairs">
        <legend>one GPU, by type</legend>
        {gpus.map(([name, price], n) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a row is its place, whatever is typed into it
          <div className="pair" key={n}>
            <input
              aria-label={`GPU type ${n + 1}`}
              placeholder="NVIDIA L4"
              value={name}
              onChange={({ target }) => setGpus(gpus.with(n, [target.value, price]))}
            />
            <input
              aria-label={`Price of ${name || n + 1}`}
              type="number"
              min={0}
              step="any"
              value={price}
              onChange={({ target }) => setGpus(gpus.with(n, [name, Number(target.value)]))}
            />
            <button type="button" className="small" onClick={() => setGpus(gpus.toSpliced(n, 1))}>
              Remove<span className="unseen"> {name}</span>
            </button>
          </div>
        ))}
        <button type="button" className="small" onClick={() => setGpus([...gpus, ["", 0]])}>
          Add a GPU type
        </button>
      </fieldset>
      <Trouble error={save.error} />
      <p className="buttons">
        <button type="submit" className="primary" disabled={save.isBusy}>
          Save prices
        </button>
      </p>
    </form>
  );
}

function Price({
  words,
  value,
  change,
}: {
  readonly words: string;
  readonly value: number;
  readonly change: (value: number) => void;
}) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{words}</label>
      <input
        id={id}
        type="number"
        min={0}
        step="any"
        value={value}
        onChange={({ target }) => change(Number(target.value))}
      />
    </div>
  );
}
