import { createConfig, lint } from "@redocly/openapi-core";
import { describe, expect, it } from "vitest";
import { root } from "../harness.js";

describe.each(["v1", "v2"])("The OpenAPI document of %s", (version) => {
  it("passes Redocly's recommended rules without a warning", async () => {
    // an endpoint's id is never one of the words of /v2, so that its paths are not ambiguous
    const config = await createConfig({ extends: ["recommended"], rules: { "no-ambiguous-paths": "off" } });
    const problems = await lint({ ref: `${root}/docs/reference/${version}.openapi.json`, config });
    expect(problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer])).toEqual([]);
  });
});
