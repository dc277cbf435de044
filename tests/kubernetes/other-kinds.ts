const texts = { type: "object", additionalProperties: { type: "string" } };

/** A kind that clusters get from others, with the fields that the chart may set: the cluster refuses any other. */
function kindOf(group: string, version: string, kind: string, fields: Readonly<Record<string, unknown>>): object {
  const plural = `${kind.toLowerCase()}s`;
  const schema = { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", properties: fields } } } };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      annotations: { "api-approved.kubernetes.io": "unapproved, of a test" },
    },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, plural },
      versions: [{ name: version, served: true, storage: true, schema }],
    },
  };
}

/** Kinds that the chart makes and that clusters get from others: Prometheus Operator's, and the Gateway API's. */
export const otherKinds = [
  kindOf("monitoring.coreos.com", "v1", "ServiceMonitor", {
    selector: { type: "object", required: ["matchLabels"], properties: { matchLabels: texts } },
    endpoints: {
      type: "array",
      items: {
        type: "object",
        properties: {
          port: { type: "string" },
          path: { type: "string" },
          interval: { type: "string", pattern: "^[0-9]+(ms|s|m)$" },
          authorization: {
            type: "object",
            properties: {
              credentials: {
                type: "object",
                required: ["key"],
                properties: { name: { type: "string" }, key: { type: "string" } },
              },
            },
          },
        },
      },
    },
  }),
  kindOf("gateway.networking.k8s.io", "v1", "HTTPRoute", {
    parentRefs: {
      type: "array",
      items: { type: "object", properties: { name: { type: "string" }, namespace: { type: "string" } } },
    },
    hostnames: { type: "array", items: { type: "string" } },
    rules: {
      type: "array",
      items: {
        type: "object",
        properties: {
          matches: {
            type: "array",
            items: {
              type: "object",
              properties: {
                path: {
                  type: "object",
                  properties: { type: { enum: ["Exact", "PathPrefix"], type: "string" }, value: { type: "string" } },
                },
              },
            },
          },
          timeouts: {
            type: "object",
            properties: { request: { type: "string", pattern: "^([0-9]{1,5}(h|m|s|ms)){1,4}$" } },
          },
          backendRefs: {
            type: "array",
            items: {
              type: "object",
              required: ["name"],
              properties: { name: { type: "string" }, port: { type: "integer" } },
            },
          },
        },
      },
    },
  }),
];
