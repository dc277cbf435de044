import swaggerUi from "@fastify/swagger-ui";
import type { FastifyInstance } from "fastify";
import { ignoreBodies } from "../shared/bodies/bodies.js";

/** What the page may load: its own files and, for *try it*, this server's API. */
const policy = {
  "default-src": "'none'",
  "script-src": "'self'",
  "style-src": "'self' 'unsafe-inline'", // the page sets styles of its own on elements
  "img-src": "'self' data:",
  "connect-src": "'self'",
  "base-uri": "'none'",
  "form-action": "'none'",
  "frame-ancestors": "'none'",
};

const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 150 40"><text x="0" y="27" fill="#fff" font-family="sans-serif" font-size="24" font-weight="600">Millrace</text></svg>`;

/**
 * A page at `/docs` that shows both OpenAPI documents and sends requests with the caller's key, which it keeps only while it
 * is open. The scope must hold the document `document()`, which `/docs/json` and `/docs/yaml` give too.
 */
export async function docsPage(app: FastifyInstance, document: () => object): Promise<void> {
  ignoreBodies(app);
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: policy,
    logo: { type: "image/svg+xml", content: logo, href: "/docs" },
    theme: { title: "Millrace API" },
    transformSpecification: document,
    transformSpecificationClone: false,
    uiConfig: {
      urls: [
        { url: "/v2/openapi.json", name: "Queue and REST v2" },
        { url: "/v1/openapi.json", name: "REST v1" },
      ],
      docExpansion: "none",
      filter: true,
      tryItOutEnabled: true,
      persistAuthorization: false,
      defaultModelsExpandDepth: -1,
    },
  });
}
