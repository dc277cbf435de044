/** Runs calls in order, a few at a time, because each holds much memory. */
export function fewAtOnce(most: number): <T>(make: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (make) => {
    if (running >= most) await new Promise<void>((go) => waiting.push(go));
    else running++;
    try {
      return await make();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  };
}
