import { useRested } from "./use-rested.js";

/** A field whose text is in the URL. */
export function FilterInput({
  label,
  placeholder,
  value,
  change,
  isFirst = false,
}: {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly change: (value: string) => void;
  /** Whether the key `/` goes to it. */
  readonly isFirst?: boolean;
}) {
  const [text, type] = useRested(value, change);
  return (
    <input
      type="search"
      {...(isFirst ? { "data-filter": true } : {})}
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={({ target }) => type(target.value)}
    />
  );
}
