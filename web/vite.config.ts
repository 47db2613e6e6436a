import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";
import { compressed } from "./build/compressed.ts";
import { offlineList } from "./build/offline-list.ts";

/** Address of `querymend serve` for the development proxy. */
const server = process.env["QUERYMEND_SERVER"] ?? "http://127.0.0.1:8642";

/** Timeout of a test in milliseconds, scaled by the slowdown that `./test` measured. */
const hangTimeout = 120_000 * Math.max(Number(process.env["QUERYMEND_TEST_SLOWDOWN"]) || 1, 1);

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: false }), offlineList(), compressed()],
  build: {
    target: "es2022",
    // The polyfill and inlined files would require a weaker Content Security Policy.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      input: { index: "index.html", sw: "src/sw.ts" },
      output: {
        // The scope of a service worker is its folder, so it is in the root, under a fixed name.
        entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  worker: {
    format: "es",
    // The server recognizes the analysis worker by its name and sends it a stricter Content Security Policy.
    rollupOptions: { output: { entryFileNames: "assets/[name]-[hash].js" } },
  },
  server: { proxy: { "/v1": server, "/pyodide": server, "/metrics": server } },
  test: {
    include: ["src/**/*.test.ts", "build/**/*.test.ts"],
    environment: "node",
    testTimeout: hangTimeout,
    hookTimeout: hangTimeout,
    teardownTimeout: hangTimeout,
  },
});
