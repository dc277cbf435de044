import { useState } from "react";
import { Copy } from "../copy.js";
import { Exact } from "./exact.js";
import { Media, mediaOf } from "./media.js";

const openDepth = 2;
const childrenShown = 100;
const textShown = 2_000;

/** A JSON value as a tree, with what it holds of images, audio and video shown as such. */
export function Json({ value, name }: { readonly value: unknown; readonly name: string }) {
  const text = () => (typeof value === "string" ? value : JSON.stringify(value, undefined, 2));
  return (
    <div className="json">
      <p className="buttons">
        <Copy text={text} />
        <button type="button" className="small" onClick={() => download(`${name}.json`, text())}>
          Download
        </button>
      </p>
      <Node value={value} depth={0} />
    </div>
  );
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function Node({ label, value, depth }: { readonly label?: string; readonly value: unknown; readonly depth: number }) {
  if (typeof value !== "object" || value === null || value instanceof Exact) {
    return (
      <div className="leaf">
        {label !== undefined && <span className="key">{label}: </span>}
        <Leaf value={value} />
      </div>
    );
  }
  return <Branch label={label} value={value} depth={depth} />;
}

interface BranchProps {
  readonly label: string | undefined;
  readonly value: object;
  readonly depth: number;
}

function Branch({ label, value, depth }: BranchProps) {
  const [shown, setShown] = useState(childrenShown);
  const entries = Object.entries(value);
  const words = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (entries.length === 0)
    return (
      <div className="leaf">
        {label !== undefined && <span className="key">{label}: </span>}
        <span className="plain">{JSON.stringify(value)}</span>
      </div>
    );
  return (
    <details open={depth < openDepth}>
      <summary>
        {label !== undefined && <span className="key">{label}: </span>}
        <span className="note">{words}</span>
      </summary>
      {entries.slice(0, shown).map(([key, child]) => (
        <Node key={key} label={key} value={child} depth={depth + 1} />
      ))}
      {entries.length > shown && (
        <button type="button" className="small" onClick={() => setShown(shown + childrenShown)}>
          {entries.length - shown} more
        </button>
      )}
    </details>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  const [isWhole, setWhole] = useState(false);
  if (value instanceof Exact) return <span className="plain">{value.text}</span>;
  if (typeof value !== "string") return <span className="plain">{String(value)}</span>;
  const media = mediaOf(value);
  if (media) return <Media {...media} />;
  if (value.length <= textShown || isWhole) return <span className="text">{value}</span>;
  return (
    <>
      <span className="text">{value.slice(0, textShown)}…</span>
      <button type="button" className="small" onClick={() => setWhole(true)}>
        all {value.length} characters
      </button>
    </>
  );
}
