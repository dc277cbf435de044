// Runs several sides in turn, round by round, and computes figures from the rounds.

/**
 * Measures each side once a round, one after another, after a warm-up round that does not count. Resolves with each
 * side's figures. In this way other load on the machine affects all sides alike.
 */
export async function interleave(sides, { rounds, warmUps = 1, onRound = () => {} }) {
  const figures = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let round = 1 - warmUps; round <= rounds; round++) {
    for (const [name, measure] of Object.entries(sides)) {
      onRound(round < 1 ? `warming up, ${name}` : `round ${round} of ${rounds}, ${name}`);
      const figure = await measure();
      if (round >= 1) figures[name].push(figure);
    }
  }
  return figures;
}

export function median(values) {
  return quantile(values, 0.5);
}

/** The value below which `share` of the values lie, interpolated between two of them. */
export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at % 1);
}

/** The least and the greatest value, which show how steady a median is. */
export const range = (values) => [Math.min(...values), Math.max(...values)];
