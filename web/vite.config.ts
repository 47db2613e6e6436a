import preact from "@preact/preset-vite";
import { defineConfig } from "vitest/config";
import { compressed } from "./build/compressed.ts";
import { offlineList } from "./build/offline-list.ts";

/** Where `querymend serve` listens while the page is worked on. */
const server = process.env["QUERYMEND_SERVER"] ?? "http://127.0.0.1:8642";

/** Milliseconds after which a test has hung, by how many times slower than usual `./test` found this machine. */
const hangTimeout = 120_000 * Math.max(Number(process.env["QUERYMEND_TEST_SLOWDOWN"]) || 1, 1);

export default defineConfig({
  plugins: [preact({ devToolsEnabled: false, prefreshEnabled: false }), offlineList(), compressed()],
  build: {
    target: "es2022",
    // The polyfill and inlined files would need a laxer content security policy.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1200,
    rollupOptions: {
      input: { index: "index.html", sw: "src/sw.ts" },
      output: {
        // A service worker rules over the folder that it lies in, so it lies at the top under a fixed name.
        entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  worker: {
    format: "es",
    // The server knows the worker that runs analyses by its name, and gives it a policy of its own.
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
