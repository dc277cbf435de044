import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { guardedSender } from "./guarded.js";

it("A URL's user name and password are sent as other clients send them", async () => {
  const heard: (string | undefined)[] = [];
  const receiver = createServer((request, response) => {
    heard.push(request.headers.authorization);
    response.end("ok");
  }).listen(0, "127.0.0.1");
  await once(receiver, "listening");
  const { port } = receiver.address() as AddressInfo;
  const sender = guardedSender({ allowPrivate: true });
  for (const who of ["", "user@", "user:p%40ss@", "user:50%@"])
    await sender.post(`http://${who}127.0.0.1:${port}/`, [Buffer.from("{}")], {}, new AbortController().signal);
  await sender.close();
  receiver.close();
  const basic = (words: string) => `Basic ${Buffer.from(words).toString("base64")}`;
  expect(heard).toEqual([undefined, basic("user:"), basic("user:p@ss"), basic("user:50%")]);
});
