import type { Metric, Registry } from "prom-client";

interface Options<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Label[];
  readonly bucketsSeconds: readonly number[];
  readonly registry: Registry;
}

/** The observations under one set of labels. */
class Series {
  readonly labels: readonly (string | number)[];
  /** Observations per bucket; the last counts those above all buckets. */
  readonly counts: number[];
  readonly #buckets: readonly number[];
  sum = 0;

  constructor(labels: readonly (string | number)[], buckets: readonly number[]) {
    this.labels = labels;
    this.#buckets = buckets;
    this.counts = new Array(buckets.length + 1).fill(0);
  }

  observe(seconds: number): void {
    let at = 0;
    while (at < this.#buckets.length && seconds > (this.#buckets[at] as number)) at++;
    (this.counts[at] as number)++;
    this.sum += seconds;
  }
}

interface Branch {
  readonly branches: Map<string | number, Branch>;
  series?: Series;
}

/**
 * A histogram for observations on every request, exported through prom-client. prom-client's own histogram builds a
 * string of the labels for each observation: 3 % of the cost of a load-balanced request.
 */
export class Durations<Label extends string> {
  readonly name: string;
  readonly #options: Options<Label>;
  readonly #root: Branch = { branches: new Map() };
  readonly #all = new Set<Series>();

  constructor(options: Options<Label>) {
    this.#options = options;
    this.name = options.name;
    options.registry.registerMetric(this as unknown as Metric<Label>);
  }

  /** The series for these labels, in the order of their names. */
  of(...labels: (string | number)[]): Series {
    let branch = this.#root;
    for (const label of labels) {
      let next = branch.branches.get(label);
      if (!next) {
        next = { branches: new Map() };
        branch.branches.set(label, next);
      }
      branch = next;
    }
    if (!branch.series) {
      branch.series = new Series(labels, this.#options.bucketsSeconds);
      this.#all.add(branch.series);
    }
    return branch.series;
  }

  /** Drops all series whose first label is this. */
  forget(label: string | number): void {
    const drop = ({ branches, series }: Branch): void => {
      if (series) this.#all.delete(series);
      for (const branch of branches.values()) drop(branch);
    };
    const branch = this.#root.branches.get(label);
    if (branch) drop(branch);
    this.#root.branches.delete(label);
  }

  /** Called by prom-client at each scrape; same form as its own histograms. */
  async get() {
    const { name, help } = this.#options;
    return { name, help, type: "histogram", aggregator: "sum", values: this.#values() };
  }

  *#values() {
    for (const series of this.#all) yield* this.#valuesOf(series);
  }

  #valuesOf({ labels, counts, sum }: Series) {
    const { name, labelNames, bucketsSeconds } = this.#options;
    const own = Object.fromEntries(labelNames.map((label, at) => [label, labels[at] ?? ""]));
    let count = 0;
    const buckets = counts.map((inBucket, at) => {
      count += inBucket;
      return { metricName: `${name}_bucket`, labels: { le: bucketsSeconds[at] ?? "+Inf", ...own }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels: own, value: sum },
      { metricName: `${name}_count`, labels: own, value: count },
    ];
  }
}
