import { createHash } from "node:crypto";
import type { Plugin } from "vite";

/** What stands in `sw.ts` where the list belongs. */
const place = "__OFFLINE_FILES__";

/**
 * Tells the service worker which files there are, and gives their list a name of its own, so that a new build takes the place of the
 * old one. Charts and the analysis worker are left out: they are kept once they were needed.
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
        worker.code = worker.code.replace(new RegExp(`["'\`]${place}["'\`]`), JSON.stringify(JSON.stringify({ version, files })));
      },
    },
  };
}
