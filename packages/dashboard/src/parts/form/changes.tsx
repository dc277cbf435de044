import { inWords, isSecret } from "./schema.js";

/**
 * Which of the named fields differ, as they were and as they are. Variables of an environment stand one by one; secrets are
 * not shown.
 */
export function Changes({
  before,
  after,
  names,
}: {
  readonly before: object;
  readonly after: object;
  readonly names: readonly string[];
}) {
  const [old, now] = [flat(before, names), flat(after, names)];
  const changed = [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name) !== now.get(name));
  if (changed.length === 0) return <p className="note">No changes.</p>;
  return (
    <dl className="changes">
      {changed.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          {isSecret(name) ? (
            <dd>
              <ins>a new {name}</ins>
            </dd>
          ) : (
            <dd>
              <del>{old.get(name) ?? "nothing"}</del> → <ins>{now.get(name) ?? "nothing"}</ins>
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

function flat(of: object, names: readonly string[]): Map<string, string> {
  const entries = Object.entries(of).filter(([name]) => names.includes(name));
  return new Map(
    entries.flatMap(([name, value]) =>
      value !== null && typeof value === "object" && !Array.isArray(value)
        ? Object.entries(value).map(([key, each]) => [`${name}.${key}`, inWords(each)] as const)
        : [[name, inWords(value)] as const],
    ),
  );
}
