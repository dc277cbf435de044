/**
 * The newest CUDA version that each branch of NVIDIA's driver for Linux supports, as `nvidia-smi` shows it. A driver
 * runs programs of older versions, too.
 */
const byBranch: readonly (readonly [branch: number, version: string])[] = [
  [590, "13.1"],
  [580, "13.0"],
  [575, "12.9"],
  [570, "12.8"],
  [565, "12.7"],
  [560, "12.6"],
  [555, "12.5"],
  [550, "12.4"],
  [545, "12.3"],
  [535, "12.2"],
  [530, "12.1"],
  [525, "12.0"],
  [520, "11.8"],
  [515, "11.7"],
  [510, "11.6"],
  [495, "11.5"],
  [470, "11.4"],
  [465, "11.3"],
  [460, "11.2"],
  [455, "11.1"],
  [450, "11.0"],
];

/** The newest CUDA version that a driver such as 570.133.20 supports; undefined if it is not known. */
export function cudaOf(driver: string): string | undefined {
  const branch = Number(/^\d+/.exec(driver)?.[0] ?? 0);
  return byBranch.find(([from]) => branch >= from)?.[1];
}

/** Compares versions such as 12.8 and 12.10 by their numbers. */
export const compareCuda = new Intl.Collator("en", { numeric: true }).compare;

/** Whether a driver supports a CUDA version; one that is not known is trusted to. */
export function supportsCuda(driver: string, version: string | undefined): boolean {
  const newest = cudaOf(driver);
  return version === undefined || newest === undefined || compareCuda(newest, version) >= 0;
}

/** What settings, or a question, say about CUDA. */
interface CudaWish {
  readonly allowedCudaVersions?: readonly string[] | null;
  readonly minCudaVersion?: string | null;
}

/** The CUDA version that a worker's driver must support: the oldest that is allowed, and no less than the minimum. */
export function neededCuda({ allowedCudaVersions, minCudaVersion }: CudaWish): string | undefined {
  const oldest = [...(allowedCudaVersions ?? [])].sort(compareCuda)[0];
  const least = [oldest, minCudaVersion].flatMap((version) => version || []);
  return least.sort(compareCuda).at(-1);
}
