/**
 * Service worker: caches the page for offline use. Questions and rows are never cached; all other
 * requests pass through to the server.
 */
interface InstallEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}
interface FetchEvent extends InstallEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}
interface Worker {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: "install" | "activate", listener: (event: InstallEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
}

// The build inserts the list of files here.
const { version, files } = JSON.parse("__OFFLINE_FILES__") as { version: string; files: string[] };
const cacheName = `page-${version}`;
const views = new Set(["/", "/ask", "/sql", "/schema", "/teach", "/operations"]);
const worker = self as unknown as Worker;

worker.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(cacheName)
      .then((cache) => cache.addAll(["/", "/icon.svg", ...files]))
      .then(() => worker.skipWaiting()),
  );
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(
    caches
      .keys()
      .then((names) => Promise.all(names.filter((old) => old.startsWith("page-") && old !== cacheName).map((old) => caches.delete(old))))
      .then(() => worker.clients.claim()),
  );
});

worker.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin) return;
  if (event.request.mode === "navigate" && views.has(url.pathname)) event.respondWith(networkFirst(event.request));
  // Do not cache the analysis worker: its Content Security Policy must come from the server.
  else if (url.pathname.startsWith("/assets/") && !url.pathname.includes("analysis-worker")) event.respondWith(cacheFirst(event.request));
  else if (url.pathname === "/icon.svg") event.respondWith(cacheFirst(event.request));
});

async function networkFirst(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    return (await caches.match("/")) ?? Response.error();
  }
}

/** File names under /assets contain a content hash, so cached files are never stale. */
async function cacheFirst(request: Request): Promise<Response> {
  const cached = await caches.match(request);
  if (cached) return cached;
  const response = await fetch(request);
  if (response.ok) {
    const cache = await caches.open(cacheName);
    await cache.put(request, response.clone());
  }
  return response;
}

export {};
