import type { Script, Step } from "./steps.js";

/**
 * The shortest list of steps, found within a number of attempts, that breaks the same rule. It leaves out ever smaller
 * pieces, as long as the rule stays broken.
 */
export async function shrink(
  script: Script,
  isBroken: (script: Script) => Promise<boolean>,
  triesMax = 300,
): Promise<Script> {
  let { steps } = script;
  let tries = 0;
  const holds = async (fewer: readonly Step[]) => tries++ < triesMax && (await isBroken({ ...script, steps: fewer }));
  for (let piece = Math.ceil(steps.length / 2); piece >= 1; piece = piece === 1 ? 0 : Math.ceil(piece / 2)) {
    for (let from = 0; from < steps.length; ) {
      const fewer = [...steps.slice(0, from), ...steps.slice(from + piece)];
      if (await holds(fewer)) steps = fewer;
      else from += piece;
    }
  }
  return { ...script, steps };
}
