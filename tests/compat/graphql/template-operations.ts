import type { Operation } from "./operation.js";
import { each, empty, flag, int, list, listOrNone, nullOnly, object, orNull, text, texts } from "./shape.js";

export const variable = object(texts("key value"));
const savedTemplate = object({
  ...texts("id name imageName dockerArgs volumeMountPath ports readme startScript"),
  ...each("containerDiskInGb volumeInGb", int),
  ...each("isServerless startSsh startJupyter advancedStart", flag),
  env: list(variable),
});
const listedTemplate = object({
  ...texts("id name imageName dockerArgs volumeMountPath ports readme category startScript"),
  containerRegistryAuthId: orNull(text),
  ...each("containerDiskInGb volumeInGb", int),
  ...each("isPublic isRunpod isServerless advancedStart", flag),
  portsConfig: listOrNone(object(texts("port name"))),
  env: listOrNone(variable),
});

/** What an endpoint's own template, and a saved one, are made of. */
export const template = {
  imageName: "registry.example/image",
  containerDiskInGb: 5,
  dockerArgs: "run --fast",
  env: [{ key: "A", value: "1" }],
};

const input = "SaveTemplateInput";

/** Templates. */
export const templateOperations: readonly Operation[] = [
  {
    by: "Python",
    root: "mutation",
    field: "saveTemplate",
    isLiteral: true,
    args: () => ({
      input: [
        input,
        {
          ...template,
          name: "python",
          volumeInGb: 0,
          volumeMountPath: "/workspace",
          ports: "8888/http,22/tcp",
          isServerless: true,
          containerRegistryAuthId: "",
          startSsh: true,
          isPublic: false,
          readme: "",
        },
      ],
    }),
    holds: () => ({ dockerArgs: "run --fast", ports: "8888/http,22/tcp", env: [{ key: "A", value: "1" }] }),
    gives: object({
      ...texts("id name imageName dockerArgs volumeMountPath ports"),
      ...each("containerDiskInGb volumeInGb", int),
      env: list(variable),
      isServerless: flag,
    }),
  },
  {
    by: "runpodctl, flash: with names of ports",
    root: "mutation",
    field: "saveTemplate",
    args: (made) => ({
      input: [
        input,
        {
          ...template,
          id: made.spareTemplate,
          name: "labelled",
          volumeInGb: 0,
          ports: "8888/http",
          portsConfig: [{ port: "8888", name: "notebook" }],
          startScript: "",
          startJupyter: false,
          startSsh: false,
          advancedStart: false,
          category: "NVIDIA",
        },
      ],
    }),
    holds: (made) => ({ id: made.spareTemplate, name: "labelled" }),
    gives: savedTemplate,
  },
  {
    by: "contract",
    root: "mutation",
    field: "deleteTemplate",
    args: (made) => ({ templateName: ["String", made.spareTemplateName] }),
    gives: nullOnly,
  },
  {
    by: "runpodctl, flash",
    root: "query",
    field: "podTemplate",
    args: (made) => ({ id: ["String!", made.template] }),
    gives: listedTemplate,
  },
  {
    by: "runpodctl: the user's",
    root: "query",
    field: "podTemplates",
    args: () => ({ input: ["PodTemplateInput", { isRunpod: false }] }),
    gives: list(listedTemplate),
  },
  {
    by: "runpodctl: the hosted service's",
    root: "query",
    field: "podTemplates",
    args: () => ({ input: ["PodTemplateInput", { isRunpod: true }] }),
    gives: empty(listedTemplate),
  },
  { by: "runpodctl", root: "query", field: "myself", gives: object({ podTemplates: list(listedTemplate) }) },
];
