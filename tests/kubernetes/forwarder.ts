import { connect, createServer, type Server, type Socket } from "node:net";

/** Stands for a load balancer: passes each connection on to one of the addresses in turn. */
export interface Forwarder {
  readonly port: number;
  close(): Promise<void>;
}

/** Starts one on an address of this machine. `targets` are asked for with each connection. */
export async function startForwarder(
  host: string,
  targets: () => readonly { readonly host: string; readonly port: number }[],
): Promise<Forwarder> {
  let turn = 0;
  const open = new Set<Socket>();
  const server: Server = createServer((client) => {
    const all = targets();
    const target = all[turn++ % Math.max(1, all.length)];
    if (!target) return client.destroy();
    const onward = connect(target);
    client.pipe(onward).pipe(client);
    for (const each of [client, onward]) {
      open.add(each);
      each.on("close", () => open.delete(each));
    }
    client.on("error", () => onward.destroy()).on("close", () => onward.destroy());
    onward.on("error", () => client.destroy()).on("close", () => client.destroy());
  });
  await new Promise<void>((done) => server.listen(0, host, done));
  const { port } = server.address() as { port: number };
  return {
    port,
    close: () => {
      const closed = new Promise<void>((done) => server.close(() => done()));
      for (const each of open) each.destroy();
      return closed;
    },
  };
}
