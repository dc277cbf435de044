import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { pageQuery } from "../../queries.js";
import { Trouble } from "../trouble.js";
import { type Controls, Input, type InputProps } from "./fields.js";

type Availability = "NONE" | "LOW" | "MEDIUM" | "HIGH";

/** Something of the catalog that a list may name. */
interface Offer {
  readonly id: string;
  readonly about: string;
  readonly availability?: Availability;
}

interface CatalogProps<Reply> extends InputProps {
  /** The route of the catalog, without its host. */
  readonly path: string;
  readonly offersIn: (reply: Reply) => readonly Offer[];
}

/** A list of names, with a button that shows those of the catalog: a press adds one, and another takes it away. */
function CatalogList<Reply>({ path, offersIn, ...input }: CatalogProps<Reply>) {
  const [isOpen, setOpen] = useState(false);
  const query = useQuery({ ...pageQuery<Reply>(path), enabled: isOpen });
  const chosen = Array.isArray(input.value) ? (input.value as string[]) : [];
  const offers = query.data ? freeFirst(offersIn(query.data)) : [];
  // where all are free, or none, that tells nothing of any: a machine without GPUs has a place for each type
  const isTold = new Set(offers.map(({ availability }) => isFree(availability))).size > 1;
  const turn = (id: string) =>
    input.change(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <div>
      <Input {...input} />
      <p className="buttons">
        <button type="button" className="small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? "Hide the catalog" : "Choose from the catalog"}
        </button>
      </p>
      <Trouble error={isOpen ? query.error : undefined} />
      {isOpen && offers.length > 0 && (
        <p className="filters">
          {offers.map(({ id, about, availability }) => (
            <button key={id} type="button" className="chip" aria-pressed={chosen.includes(id)} onClick={() => turn(id)}>
              {id}{" "}
              <span className="note">
                {about}
                {isTold && isFree(availability) && ", free now"}
              </span>
            </button>
          ))}
        </p>
      )}
    </div>
  );
}

const isFree = (availability: Availability | undefined): boolean => (availability ?? "NONE") !== "NONE";
const freeFirst = (offers: readonly Offer[]): readonly Offer[] =>
  offers.toSorted((a, b) => Number(isFree(b.availability)) - Number(isFree(a.availability)));

type Listed<More> = readonly (Pick<Offer, "id" | "availability"> & More)[];

const GpuTypes = (props: InputProps) => (
  <CatalogList<{ readonly gpus: Listed<{ readonly memory: number }> }>
    {...props}
    path="/v2/catalog/gpus?include=AVAILABILITY"
    offersIn={({ gpus }) => gpus.map(({ memory, ...gpu }) => ({ ...gpu, about: `${memory} GB` }))}
  />
);
const CpuFlavors = (props: InputProps) => (
  <CatalogList<{ readonly cpus: Listed<{ readonly ramGbPerVcpu: number }> }>
    {...props}
    path="/v2/catalog/cpus?include=AVAILABILITY"
    offersIn={({ cpus }) => cpus.map(({ ramGbPerVcpu, ...cpu }) => ({ ...cpu, about: `${ramGbPerVcpu} GB a vCPU` }))}
  />
);
const DataCenters = (props: InputProps) => (
  <CatalogList<{ readonly dataCenters: Listed<{ readonly name: string }> }>
    {...props}
    path="/v2/catalog/datacenters"
    offersIn={({ dataCenters }) => dataCenters.map(({ id, name }) => ({ id, about: name }))}
  />
);

/** Controls for the fields whose values are in the catalog. */
export const catalogControls: Controls = {
  gpuTypeIds: GpuTypes,
  cpuFlavorIds: CpuFlavors,
  dataCenterIds: DataCenters,
};
