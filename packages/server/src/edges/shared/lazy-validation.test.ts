import Fastify from "fastify";
import { expect, it, onTestFinished } from "vitest";
import { buildLazily } from "./lazy-validation.js";

it("A route's schema is compiled by its first request, and then checks each", async () => {
  let compilations = 0;
  const schemaOf = (max: number) => ({
    type: "object",
    get properties() {
      compilations++;
      return { size: { type: "integer", maximum: max } };
    },
  });
  const app = Fastify({ schemaController: { compilersFactory: { buildValidator: buildLazily } } });
  onTestFinished(() => app.close());
  for (const max of [1, 2]) app.post(`/${max}`, { schema: { body: schemaOf(max) } }, async () => "fine");
  await app.ready();
  const before = compilations;
  const post = async (path: string, size: unknown) => {
    const { statusCode, body } = await app.inject({ method: "POST", url: path, payload: { size } });
    return statusCode === 200 ? body : JSON.parse(body).message;
  };
  expect(await post("/1", 1)).toBe("fine");
  const after = compilations;
  expect(after).toBeGreaterThan(before);
  expect(await post("/1", 2)).toBe("body/size must be <= 1");
  expect(await post("/1", "x")).toMatch(/must be integer/);
  expect(await post("/1", 0)).toBe("fine");
  expect(compilations).toBe(after);
  expect(await post("/2", 3)).toBe("body/size must be <= 2");
  expect(compilations).toBeGreaterThan(after);
});
