import { existsSync } from "node:fs";
import { join } from "node:path";
import { createClient, type StatusBody } from "@millrace/api";

/** Proves on the first start that the service works: makes an endpoint for `examples/hello` and runs one job. */
export async function runDemo(url: string, key: string): Promise<{ endpointId: string; job: StatusBody } | undefined> {
  const directory = join(import.meta.dirname, "../../../examples/hello");
  if (!existsSync(directory)) return undefined;
  const client = createClient({ url, key });
  const template = await client.call<{ id: string }>("POST", "/v1/templates", {
    name: "hello",
    imageName: directory,
    isServerless: true,
  });
  const endpoint = await client.call<{ id: string }>("POST", "/v1/endpoints", {
    name: "hello",
    templateId: template.id,
  });
  const job = await client.runsync(endpoint.id, { input: { name: "Millrace" } }, 30_000);
  return { endpointId: endpoint.id, job };
}
