import pg from "pg";

/** A parameter's bytes where they lie: a large one goes to the socket from there, and is not copied into a message first. */
export class Pieces {
  readonly parts: readonly Uint8Array[];
  constructor(parts: readonly Uint8Array[]) {
    this.parts = parts;
  }
  get length(): number {
    return lengthOf(this.parts);
  }
}

const lengthOf = (parts: readonly Uint8Array[]): number => parts.reduce((sum, { length }) => sum + length, 0);

/** What the driver is about to send with a statement's values. */
interface Bind {
  readonly statement?: string;
  readonly values: readonly unknown[];
  readonly valueMapper: (value: unknown) => Buffer | string | null;
}
interface DriverConnection {
  readonly stream: { readonly writable: boolean; write(part: Uint8Array): void };
  bind(values: Bind): void;
}

/** The driver's client, which takes {@link Pieces} among the values of a statement as well. */
export class PiecewiseClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config);
    const { connection } = this as unknown as { connection: DriverConnection };
    const bind = connection.bind.bind(connection);
    connection.bind = (message) => {
      if (!message.values.some((value) => value instanceof Pieces)) return bind(message);
      const parts = bindMessage(message);
      if (connection.stream.writable) for (const part of parts) connection.stream.write(part);
    };
  }
}

/** PostgreSQL's Bind message: the unnamed portal, values as text but for bytes, results as text. */
function bindMessage({ statement = "", values, valueMapper }: Bind): Uint8Array[] {
  const mapped = values.map((value) => (value instanceof Pieces ? value : valueMapper(value)));
  const formats = mapped.map((value) => Number(typeof value === "object" && value !== null));
  const body = [
    Buffer.from(`\0${statement}\0`),
    integers("Int16BE", 2, [formats.length, ...formats, formats.length]),
    ...mapped.flatMap((value) => sized(value)),
    integers("Int16BE", 2, [1, 0]),
  ];
  return [Buffer.from("B"), integers("Int32BE", 4, [4 + lengthOf(body)]), ...body];
}

/** A value, with its length before it; NULL is a length of -1. */
function sized(value: Pieces | Buffer | string | null): readonly Uint8Array[] {
  if (value === null) return [integers("Int32BE", 4, [-1])];
  const parts = value instanceof Pieces ? value.parts : [typeof value === "string" ? Buffer.from(value) : value];
  return [integers("Int32BE", 4, [lengthOf(parts)]), ...parts];
}

function integers(kind: "Int16BE" | "Int32BE", bytes: number, values: readonly number[]): Buffer {
  const buffer = Buffer.alloc(bytes * values.length);
  values.forEach((value, n) => void buffer[`write${kind}`](value, bytes * n));
  return buffer;
}
