import { useEffect, useRef, useState } from "react";

const windowMs = 60_000;
const lookMs = 5_000;

/** How much a count that only grows has grown in the last minute, or since the page was opened. */
export function useRate(count: number): number {
  const samples = useRef<{ readonly at: number; readonly count: number }[]>([]);
  const [rate, setRate] = useState(0);
  useEffect(() => {
    function look() {
      const now = Date.now();
      samples.current.push({ at: now, count });
      while ((samples.current[1]?.at ?? now) < now - windowMs) samples.current.shift();
      setRate(Math.max(0, count - (samples.current[0]?.count ?? count)));
    }
    look();
    const timer = setInterval(look, lookMs);
    return () => clearInterval(timer);
  }, [count]);
  return rate;
}
