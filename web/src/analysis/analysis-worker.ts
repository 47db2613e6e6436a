import { limitMemory, removeGlobals } from "./sandbox";
import { limits } from "./limits";
import type { AnalysisRequest, WorkerMessage } from "./messages";
import { python } from "./python";

/**
 * The part of Pyodide's API used here. Its files are served by the server and are not part of the
 * bundle.
 */
interface Pyodide {
  loadPackage(names: string[], options: { messageCallback: () => void; checkIntegrity: boolean }): Promise<unknown>;
  runPython(code: string): (names: unknown, replies: unknown, code: string, post: (message: string) => void) => string;
  toPy(value: unknown): unknown;
}
interface Loader {
  loadPyodide(options: { indexURL: string; jsglobals: object; stdout: () => void; stderr: () => void }): Promise<Pyodide>;
}

const postRaw = postMessage.bind(globalThis) as (message: unknown) => void;
const post = (message: WorkerMessage) => postRaw(message);

onmessage = (message: MessageEvent<AnalysisRequest>) => {
  // Handle a single request per worker, so that one analysis cannot tamper with the rows of the
  // next.
  onmessage = null;
  void runAnalysis(message.data);
};

async function runAnalysis({ tables, code }: AnalysisRequest): Promise<void> {
  try {
    post({ kind: "stage", stage: "loading" });
    limitMemory(limits.memoryBytes);
    const pyodide = await loadPython();
    post({ kind: "stage", stage: "reading" });
    const analyze = pyodide.runPython(python);
    const names = pyodide.toPy(tables.map((table) => table.name));
    const decoder = new TextDecoder();
    const replies = pyodide.toPy(tables.map((table) => decoder.decode(table.reply)));
    removeGlobals(globalThis);
    postRaw(JSON.parse(analyze(names, replies, code, (message) => postRaw(JSON.parse(message)))));
  } catch (error) {
    post({ kind: "failed", reason: error instanceof Error ? error.message : String(error), output: "" });
  }
}

async function loadPython(): Promise<Pyodide> {
  const url = "/pyodide/pyodide.mjs";
  const { loadPyodide } = (await import(/* @vite-ignore */ url)) as Loader;
  const ignore = () => undefined;
  // Python sees only these JavaScript globals: what its event loop needs, and no more.
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
  const pyodide = await loadPyodide({ indexURL: "/pyodide/", jsglobals, stdout: ignore, stderr: ignore });
  await pyodide.loadPackage(["pandas"], { messageCallback: ignore, checkIntegrity: true });
  return pyodide;
}
