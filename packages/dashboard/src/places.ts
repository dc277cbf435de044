/** The pages that the rail and the palette lead to, besides those of endpoints. */
export const places = [
  { to: "/", title: "Overview", about: "all endpoints" },
  { to: "/templates", title: "Templates", about: "what workers are made of" },
  { to: "/volumes", title: "Volumes", about: "directories that workers share" },
  { to: "/pods", title: "Pods", about: "containers that stay" },
  { to: "/secrets", title: "Secrets", about: "values for environments" },
  { to: "/registries", title: "Registries", about: "credentials for private images" },
  { to: "/keys", title: "API keys", about: "who may call what" },
  { to: "/users", title: "Users", about: "the team" },
  { to: "/webhooks", title: "Webhooks", about: "deliveries and receivers" },
  { to: "/usage", title: "Usage", about: "what ran, and what it costs" },
  { to: "/hosts", title: "Hosts", about: "machines and GPUs" },
  { to: "/server", title: "Server", about: "what runs here, and its API" },
  { to: "/audit", title: "Audit", about: "who changed what" },
] as const;
