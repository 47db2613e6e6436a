import { createHash } from "node:crypto";
import type { Plugin } from "vite";

/** Placeholder in `sw.ts` for the list. */
const placeholder = "__OFFLINE_FILES__";

/**
 * Inserts the list of files to precache into the service worker, with a version hash, so that a new build replaces the old
 * cache. Charts and the analysis worker are left out; charts are cached on first use.
 */
export function offlineList(): Plugin {
  return {
    name: "offline-list",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const worker = bundle["sw.js"];
        if (worker?.type !== "chunk") return;
        const files = Object.values(bundle)
          .filter((file) => file.fileName.startsWith("assets/") && !/vega|analysis-worker/.test(file.fileName))
          .filter((file) => file.type === "asset" || file.code.length < 200_000)
          .map((file) => `/${file.fileName}`)
          .sort();
        const version = createHash("sha256").update(files.join()).digest("hex").slice(0, 12);
        worker.code = worker.code.replace(new RegExp(`["'\`]${placeholder}["'\`]`), JSON.stringify(JSON.stringify({ version, files })));
      },
    },
  };
}
