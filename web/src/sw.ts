/**
 * Keeps the page itself, so that it opens while the server is away. Questions and rows are never kept: whatever does not belong to the
 * page goes to the server untouched.
 */
interface Installing extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface Fetching extends Installing {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
interface Worker {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: Installing) => void): void;
  addEventListener(type: "fetch", listener: (event: Fetching) => void): void;
}

// The build puts the list of files here.
const { version, files } = JSON.parse("__OFFLINE_FILES__") as { version: string; files: string[] };
const name = `page-${version}`;
const views = new Set(["/", "/ask", "/sql", "/schema", "/teach", "/operations"]);
const worker = self as unknown as Worker;

worker.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(name)
      .then((cache) => cache.addAll(["/", "/icon.svg", ...files]))
      .then(() => worker.skipWaiting()),
  );
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((old) => old.startsWith("page-") && old !== name).map((old) => caches.delete(old))))
      .then(() => worker.clients.claim()),
  );
});

worker.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  if (event.request.mode === "navigate" && views.has(url.pathname)) event.respondWith(freshPage(event.request));
  // The worker of analyses is left to the browser: its policy must come from the server.
  else if (url.pathname.startsWith("/assets/") && !url.pathname.includes("analysis-worker")) event.respondWith(keptFile(event.request));
  else if (url.pathname === "/icon.svg") event.respondWith(keptFile(event.request));
});

async function freshPage(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match("/")) ?? Response.error();
  }
}

/** Files under /assets have their content's hash in their names, so what is kept is never old. */
async function keptFile(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) {
    const cache = await caches.open(name);
    await cache.put(request, response.clone());
  }
  return response;
}

export {};
