import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "dist",
    assetsDir: "assets",
    target: "es2023",
    // a data: URL would need a wider content security policy
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8000", "/v2": "http://127.0.0.1:8000" } },
});
