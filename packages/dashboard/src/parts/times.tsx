import { ago } from "@millrace/api/words";

export { span } from "@millrace/api/words";

/** When something was, in words; the exact time is its title. */
export const Ago = ({ at }: { readonly at: string | undefined }) =>
  at === undefined ? (
    "–"
  ) : (
    <time dateTime={at} title={new Date(at).toLocaleString()}>
      {ago(at)}
    </time>
  );
