/** What a public description says of a field. */
export interface Fact {
  readonly is: "text" | "whole" | "number" | "flag" | "list" | "map";
  /** The words that it, or each entry of a list, may be. */
  readonly of?: readonly string[];
  readonly default?: unknown;
  readonly least?: number;
  readonly most?: number;
}
export type Facts = Readonly<Record<string, Fact>>;

const by = (is: Fact["is"], value: unknown): Fact => (value === undefined ? { is } : { is, default: value });
export const text = (value?: string): Fact => by("text", value);
export const flag = (value?: boolean): Fact => by("flag", value);
export const number: Fact = { is: "number" };
export const map = (value?: object): Fact => by("map", value);
export const list = (value?: readonly string[]): Fact => by("list", value);
export const listOf = (of: readonly string[]): Fact => ({ is: "list", of });
export const word = (of: readonly string[], value?: string): Fact => ({ ...text(value), of });
export const whole = (value?: number, range: { readonly least?: number; readonly most?: number } = {}): Fact => ({
  ...by("whole", value),
  ...range,
});

/** One operation of a description. */
export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** Below the prefix; `{name}` is the id of a resource. */
  readonly path: string;
  readonly status: number;
  readonly body?: Facts;
  /** Without these fields of its body it is refused. */
  readonly required?: readonly string[];
  readonly query?: Facts;
  /** The fields of its reply, or of each entry if it is a list. */
  readonly reply?: Facts;
  readonly isList?: true;
  /** The field that holds the list. */
  readonly envelope?: string;
}

export const gpuTypes = [
  ...["NVIDIA GeForce RTX 4090", "NVIDIA A40", "NVIDIA RTX A5000", "NVIDIA GeForce RTX 5090", "NVIDIA H100 80GB HBM3"],
  ...["NVIDIA GeForce RTX 3090", "NVIDIA RTX A4500", "NVIDIA L40S", "NVIDIA H200", "NVIDIA L4"],
  ...["NVIDIA RTX 6000 Ada Generation", "NVIDIA A100-SXM4-80GB", "NVIDIA RTX 4000 Ada Generation", "NVIDIA RTX A6000"],
  ...["NVIDIA A100 80GB PCIe", "NVIDIA RTX 2000 Ada Generation", "NVIDIA RTX A4000", "NVIDIA H100 PCIe"],
  ...["NVIDIA H100 NVL", "NVIDIA L40", "NVIDIA B200", "NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 3080"],
  ...["NVIDIA GeForce RTX 3070", "AMD Instinct MI300X OAM", "NVIDIA GeForce RTX 4080 SUPER", "Tesla V100-PCIE-16GB"],
  ...["Tesla V100-SXM2-32GB", "NVIDIA RTX 5000 Ada Generation", "NVIDIA GeForce RTX 4070 Ti"],
  ...[
    "NVIDIA RTX 4000 SFF Ada Generation",
    "NVIDIA GeForce RTX 3090 Ti",
    "NVIDIA RTX A2000",
    "NVIDIA GeForce RTX 4080",
  ],
  ...["NVIDIA A30", "NVIDIA GeForce RTX 5080", "Tesla V100-FHHL-16GB", "NVIDIA H200 NVL", "Tesla V100-SXM2-16GB"],
  ...["NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "NVIDIA RTX PRO 6000 Blackwell Server Edition"],
  ...["NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "NVIDIA A5000 Ada", "Tesla V100-PCIE-32GB"],
  ...["NVIDIA  RTX A4500", "NVIDIA  A30", "NVIDIA GeForce RTX 3080TI", "Tesla T4", "NVIDIA RTX A30"],
];
export const dataCenters = [
  ...["EU-RO-1", "CA-MTL-1", "EU-SE-1", "US-IL-1", "EUR-IS-1", "EU-CZ-1", "US-TX-3", "EUR-IS-2", "US-KS-2", "US-GA-2"],
  ...["US-WA-1", "US-TX-1", "CA-MTL-3", "EU-NL-1", "US-TX-4", "US-CA-2", "US-NC-1", "OC-AU-1", "US-DE-1", "EUR-IS-3"],
  ...["CA-MTL-2", "AP-JP-1", "EUR-NO-1", "EU-FR-1", "US-KS-3", "US-GA-1"],
];
export const cudaVersions = [
  ...["13.0", "12.9", "12.8", "12.7", "12.6", "12.5", "12.4", "12.3", "12.2", "12.1", "12.0", "11.8"],
];
