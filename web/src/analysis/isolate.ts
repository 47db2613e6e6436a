/** Names of a worker's world that reach a network, a store, or another page of ours. */
const waysOut = [
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
 * Takes them away, for good: also from the prototypes, where most of them really are. What is left is arithmetic and `postMessage`.
 * The server's policy for this file says the same once more, for what a browser may add to its workers; it also keeps a text from
 * becoming code, for which `Function` would have to go, and Pyodide needs that.
 */
export function isolate(world: object): void {
  for (const name of waysOut) {
    for (let owner: object | null = world; owner && owner !== Object.prototype; owner = Object.getPrototypeOf(owner) as object | null) {
      if (Object.hasOwn(owner, name)) Reflect.deleteProperty(owner, name);
    }
    Object.defineProperty(world, name, { value: undefined, writable: false, configurable: false });
  }
}

/**
 * Python's memory may not grow beyond a bound: what asks for more gets what a full machine would give, and Python turns it into a
 * `MemoryError`. Browsers have no such setting, so the growing itself is bounded.
 */
export function boundMemory(bytes: number): void {
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
