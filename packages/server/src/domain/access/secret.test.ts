import { describe, expect, it } from "vitest";
import { hiddenTexts, secretsNamed, withSecrets } from "./secret.js";

const env = {
  PLAIN: "as it is",
  TOKEN: "{{ RUNPOD_SECRET_token }}",
  HEADER: "Bearer {{RUNPOD_SECRET_token}}, {{  RUNPOD_SECRET_other-one  }}!",
  ALMOST: "{ RUNPOD_SECRET_token } {{ SECRET_token }} {{ RUNPOD_SECRET_ }}",
};

describe("An environment's secrets", () => {
  it("are the secrets it refers to, each once", () => {
    expect(secretsNamed(env)).toEqual(["token", "other-one"]);
  });

  it("are inserted unchanged, and their variables are known", () => {
    const values = new Map([
      ["token", "{{ RUNPOD_SECRET_other-one }}$&"],
      ["other-one", 'é"x'],
    ]);
    const filled = withSecrets(env, values);
    expect(filled.env).toEqual({
      ...env,
      TOKEN: "{{ RUNPOD_SECRET_other-one }}$&",
      HEADER: 'Bearer {{ RUNPOD_SECRET_other-one }}$&, é"x!',
    });
    expect(hiddenTexts(filled.env, filled.hidden)).toEqual([values.get("token"), values.get("token"), 'é"x']);
  });
});
