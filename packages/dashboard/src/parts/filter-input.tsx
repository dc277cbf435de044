import { useEffect, useRef, useState } from "react";

const restMs = 200;

/** A field whose text is in the URL: written a moment after the last key, so that typing is never overtaken. */
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
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sent = useRef(value);
  useEffect(() => {
    // another link or the way back has changed it
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  function type(next: string) {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      sent.current = next;
      change(next);
    }, restMs);
  }
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
