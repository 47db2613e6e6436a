import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const compressible = /\.(js|css|html|svg|json|webmanifest|wasm)$/;

/**
 * Precompresses each file as `.br` and `.gz`, so that the server never compresses at run time, and prints the compressed
 * size of the first load.
 */
export function compressed(): Plugin {
  let out = "dist";
  return {
    name: "compressed",
    apply: "build",
    configResolved(config) {
      out = config.build.outDir;
    },
    async closeBundle() {
      // The folder is tracked but its content is not; the build has just emptied it.
      await writeFile(join(out, ".gitignore"), "# Build output of the page, embedded into the binary.\n*\n!.gitignore\n");
      const sizes = new Map<string, { plain: number; br: number }>();
      for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !compressible.test(entry.name)) continue;
        const text = await readFile(path);
        const br = await promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
        await writeFile(`${path}.br`, br);
        await writeFile(`${path}.gz`, await promisify(gzip)(text, { level: 9 }));
        sizes.set(relative(out, path), { plain: text.length, br: br.length });
      }
      const index = await readFile(join(out, "index.html"), "utf8");
      let first = sizes.get("index.html")?.br ?? 0;
      for (const [name, { plain, br }] of [...sizes].sort((a, b) => b[1].br - a[1].br)) {
        const now = index.includes(`/${name}`);
        if (now) first += br;
        console.log(`${kilobytes(plain)} ${kilobytes(br)} br  ${now ? "first" : "     "}  ${name}`);
      }
      console.log(`first load: ${kilobytes(first).trim()} compressed`);
    },
  };
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} kB`.padStart(10);
}
