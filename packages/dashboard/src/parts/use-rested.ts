import { useEffect, useRef, useState } from "react";

const restMs = 200;

/**
 * A text of the URL that a person changes in quick steps. It is written a moment after the last one, so that typing and
 * dragging are never overtaken by what they have already written.
 */
export function useRested(value: string, write: (value: string) => void): [string, (next: string) => void] {
  const [text, setText] = useState(value);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const sent = useRef(value);
  useEffect(() => {
    // another link or the way back has changed it
    if (value !== sent.current) setText(value);
    sent.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  function change(next: string) {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      sent.current = next;
      write(next);
    }, restMs);
  }
  return [text, change];
}
