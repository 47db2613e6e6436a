/**
 * Globals of a worker that give access to the network, to storage, or to other pages of the origin.
 */
const blockedGlobals = [
  "fetch",
  "fetchLater",
  "XMLHttpRequest",
  "WebSocket",
  "WebSocketStream",
  "WebTransport",
  "EventSource",
  "RTCPeerConnection",
  "importScripts",
  "Worker",
  "SharedWorker",
  "BroadcastChannel",
  "indexedDB",
  "caches",
  "cookieStore",
  "navigator",
  "storage",
  "webkitRequestFileSystem",
  "webkitRequestFileSystemSync",
  "webkitResolveLocalFileSystemURL",
  "webkitResolveLocalFileSystemSyncURL",
  "showOpenFilePicker",
  "Notification",
];

/**
 * Sandboxes the worker: removes the blocked globals from the scope and its prototypes, permanently.
 * Only computation and `postMessage` remain. The Content Security Policy that the server sends for
 * this file enforces the same for globals that a browser may add. The policy also forbids `eval`;
 * removing `Function` would do that too, but Pyodide needs it.
 */
export function removeGlobals(scope: object): void {
  for (const name of blockedGlobals) {
    for (let owner: object | null = scope; owner && owner !== Object.prototype; owner = Object.getPrototypeOf(owner) as object | null) {
      if (Object.hasOwn(owner, name)) Reflect.deleteProperty(owner, name);
    }
    Object.defineProperty(scope, name, { value: undefined, writable: false, configurable: false });
  }
}

/**
 * Caps the growth of WebAssembly memory. An allocation beyond the limit fails, and Python raises
 * `MemoryError`. Browsers have no setting for this, so `grow` itself is wrapped.
 */
export function limitMemory(bytes: number): void {
  const memory = WebAssembly.Memory.prototype;
  const grow = memory.grow;
  const page = 65_536;
  Object.defineProperty(memory, "grow", {
    value(this: WebAssembly.Memory, pages: number) {
      if (this.buffer.byteLength + Number(pages) * page > bytes) throw new RangeError("the memory is bounded");
      return grow.call(this, pages);
    },
    writable: false,
    configurable: false,
  });
}
