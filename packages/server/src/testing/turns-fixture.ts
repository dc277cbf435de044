import { vi } from "vitest";
import { turns } from "../turns.js";

/** Uses up the rest of this turn of the event loop. */
export function useUpTurn(): void {
  while (!turns.isOver);
}

/** The result of `act`, and how often it waited for a turn while other work used up every turn. */
export async function withTurns<T>(act: () => Promise<T>): Promise<{ value: T; waits: number }> {
  let isOpen = true;
  const others = () => {
    useUpTurn();
    if (isOpen) turns.wait(["others"], others);
  };
  const take = vi.spyOn(turns, "take");
  others();
  try {
    const value = await act();
    return { value, waits: take.mock.results.filter(({ value: wait }) => wait !== undefined).length };
  } finally {
    isOpen = false;
    take.mockRestore();
  }
}
