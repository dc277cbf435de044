import { defineConfig } from "vite";
import { compression } from "vite-plugin-compression2";

export default defineConfig({
  plugins: [compression({ algorithms: ["brotliCompress", "gzip"], threshold: 1_024 })],
  build: {
    outDir: "dist/app",
    assetsDir: "assets",
    target: "es2023",
    // a data: URL would need a wider content security policy
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // whose code the app holds, and under which licence
    license: { fileName: "licenses.md" },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8000", "/v2": "http://127.0.0.1:8000" } },
});
