import { boundMemory, isolate } from "./isolate";
import { limits } from "./limits";
import type { Order, Word } from "./messages";
import { python } from "./python";

/** As much of Pyodide as is used here; its files are the server's, not part of the page. */
interface Pyodide {
  loadPackage(names: string[], options: { messageCallback: () => void; checkIntegrity: boolean }): Promise<unknown>;
  runPython(code: string): (names: unknown, replies: unknown, code: string, tell: (word: string) => void) => string;
  toPy(value: unknown): unknown;
}
interface Loader {
  loadPyodide(options: { indexURL: string; jsglobals: object; stdout: () => void; stderr: () => void }): Promise<Pyodide>;
}

const say = postMessage.bind(globalThis) as (word: unknown) => void;
const tell = (word: Word) => say(word);

onmessage = (message: MessageEvent<Order>) => {
  // One order, and no other: what one analysis did to this world must not meet the rows of the next.
  onmessage = null;
  void work(message.data);
};

async function work({ tables, code }: Order): Promise<void> {
  try {
    tell({ kind: "stage", stage: "loading" });
    boundMemory(limits.memory);
    const pyodide = await start();
    tell({ kind: "stage", stage: "reading" });
    const analyse = pyodide.runPython(python);
    const names = pyodide.toPy(tables.map((table) => table.name));
    const decoder = new TextDecoder();
    const replies = pyodide.toPy(tables.map((table) => decoder.decode(table.reply)));
    isolate(globalThis);
    say(JSON.parse(analyse(names, replies, code, (word) => say(JSON.parse(word)))));
  } catch (error) {
    tell({ kind: "failed", why: error instanceof Error ? error.message : String(error), printed: "" });
  }
}

async function start(): Promise<Pyodide> {
  const address = "/pyodide/pyodide.mjs";
  const { loadPyodide } = (await import(/* @vite-ignore */ address)) as Loader;
  const quiet = () => undefined;
  // Python sees these names of JavaScript instead of the whole world: what its own event loop needs, and no more.
  const jsglobals = Object.assign(Object.create(null) as object, {
    setTimeout: setTimeout.bind(globalThis),
    clearTimeout: clearTimeout.bind(globalThis),
    Object,
    Array,
    Promise,
    Error,
    Map,
    Set,
    Uint8Array,
  });
  const pyodide = await loadPyodide({ indexURL: "/pyodide/", jsglobals, stdout: quiet, stderr: quiet });
  await pyodide.loadPackage(["pandas"], { messageCallback: quiet, checkIntegrity: true });
  return pyodide;
}
