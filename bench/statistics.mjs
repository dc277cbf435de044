// Numbers out of numbers.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The least and the greatest, for whoever wants to know how steady a median is. */
export const range = (values) => [Math.min(...values), Math.max(...values)];
