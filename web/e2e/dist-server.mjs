// Serves web/dist as the server does, with its policy, and passes everything else on; for binaries that do not carry the page yet.
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

const dist = process.env.QUERYMEND_DIST ?? path.join(path.dirname(fileURLToPath(import.meta.url)), "../dist");
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const workerPolicy = (host) => `default-src 'none'; script-src http://${host}/pyodide/ 'wasm-unsafe-eval'; connect-src http://${host}/pyodide/; base-uri 'none'`;
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json", ".wasm": "application/wasm", ".webmanifest": "application/manifest+json" };

export async function startDist(target, pyodide) {
  let hidden = false;
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://x");
    if (hidden) return request.socket.destroy();
    if (/^\/(v1\/|metrics|openapi|healthz|readyz)/.test(pathname)) return pass(request, response, target());
    const file = pathname.startsWith("/pyodide/") ? path.join(pyodide, path.basename(pathname)) : path.join(dist, ["/", "/ask", "/sql", "/schema", "/teach", "/operations"].includes(pathname) ? "index.html" : pathname);
    if (!fs.existsSync(file)) {
      response.writeHead(404);
      return response.end();
    }
    const headers = { "content-type": types[path.extname(file)] ?? "application/octet-stream", "content-security-policy": pathname.startsWith("/assets/analysis-worker") ? workerPolicy(request.headers.host) : policy, "x-content-type-options": "nosniff" };
    const packed = /\bbr\b/.test(request.headers["accept-encoding"] ?? "") && fs.existsSync(`${file}.br`);
    if (packed) headers["content-encoding"] = "br";
    response.writeHead(200, headers);
    fs.createReadStream(packed ? `${file}.br` : file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    hide: (yes) => {
      hidden = yes;
      if (yes) server.closeAllConnections();
    },
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function pass(request, response, target) {
  const onward = http.request(new URL(request.url, target), { method: request.method, headers: { ...request.headers, host: new URL(target).host } }, (reply) => {
    response.writeHead(reply.statusCode, reply.headers);
    reply.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}
