import { Trouble } from "./trouble.js";
import { useAction } from "./use-action.js";

/** A button that changes something at once, and says so if it could not. */
export function Action({
  verb,
  act,
  isPrimary = false,
}: {
  readonly verb: string;
  readonly act: () => Promise<unknown>;
  readonly isPrimary?: boolean;
}) {
  const action = useAction(act);
  return (
    <>
      <button
        type="button"
        className={isPrimary ? "small primary" : "small"}
        disabled={action.isBusy}
        onClick={action.run}
      >
        {verb}
      </button>
      <Trouble error={action.error} />
    </>
  );
}
