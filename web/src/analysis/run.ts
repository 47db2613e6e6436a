import { signal, type Signal } from "@preact/signals";
import { send, type Program, type Rows } from "../api";
import { strings } from "../strings";
import { limits } from "./limits";
import { parseWorkerMessage, type LoadedTable, type AnalysisRequest, type TablePayload } from "./messages";

export type Step = "fetching" | "loading" | "reading" | "running" | "done" | "failed" | "stopped";

/** State of an analysis. */
export interface AnalysisState {
  step: Step;
  /** Number of tables fetched so far. */
  fetchedTables: number;
  loaded: LoadedTable[];
  rows: Rows | null;
  output: string;
  reason: string;
}

export interface AnalysisHandle {
  state: Signal<AnalysisState>;
  stop: () => void;
}

const runs = new WeakMap<Program, AnalysisHandle>();

/** Starts the analysis of a plan. Rendering the same plan again returns the running analysis. */
export function startAnalysis(plan: Program, database: string): AnalysisHandle {
  const existing = runs.get(plan);
  if (existing) return existing;
  const state = signal<AnalysisState>({ step: "fetching", fetchedTables: 0, loaded: [], rows: null, output: "", reason: "" });
  const controller = new AbortController();
  const isFinished = () => ["done", "failed", "stopped"].includes(state.value.step);
  const update = (changed: Partial<AnalysisState>) => {
    if (!isFinished()) state.value = { ...state.value, ...changed };
  };
  const handle = {
    state,
    stop() {
      update({ step: "stopped" });
      controller.abort();
    },
  };
  runs.set(plan, handle);
  fetchTables(plan, database, controller.signal, (fetchedTables) => update({ fetchedTables }))
    .then((tables) => runInWorker({ tables, code: plan.code }, controller.signal, update))
    .catch((error: unknown) => update({ step: "failed", reason: error instanceof Error ? error.message : String(error) }));
  return handle;
}

/** The page fetches the rows with its credential; the worker that receives them has none. */
async function fetchTables(plan: Program, database: string, stop: AbortSignal, onProgress: (fetchedTables: number) => void): Promise<TablePayload[]> {
  // Fails early, with the server's hint, if Pyodide is not installed there.
  await (await send("/pyodide/pyodide-lock.json", { signal: stop, accept: "*/*" })).body?.cancel();
  const tables: TablePayload[] = [];
  let left: number = limits.totalBytes;
  for (const { name, sql } of plan.tables) {
    const response = await send("/v1/run", { body: { sql, ...(database && { database }), max_rows: limits.rowsPerTable }, signal: stop });
    const reply = await readBounded(response, left);
    left -= reply.byteLength;
    tables.push({ name, reply });
    onProgress(tables.length);
  }
  return tables;
}

/** Reads the body of a response, up to a size limit. */
async function readBounded(response: Response, maxBytes: number): Promise<ArrayBuffer> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) break;
    size += chunk.value.byteLength;
    if (size > maxBytes) {
      await reader?.cancel();
      throw new Error(strings.analysis.tooLarge(Math.round(limits.totalBytes / 1_048_576)));
    }
    chunks.push(chunk.value);
  }
  return new Blob(chunks).arrayBuffer();
}

/** Runs the request in a dedicated worker, which is terminated on completion, timeout or stop. */
function runInWorker(request: AnalysisRequest, stop: AbortSignal, update: (changed: Partial<AnalysisState>) => void): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const worker = new Worker(new URL("./analysis-worker.ts", import.meta.url), { type: "module", name: "analysis" });
    let timer = 0;
    const end = (changed: Partial<AnalysisState>) => {
      clearTimeout(timer);
      worker.terminate();
      stop.removeEventListener("abort", onStop);
      update(changed);
      resolve();
    };
    const onStop = () => end({ step: "stopped" });
    const setTimer = (ms: number, reason: string) => {
      clearTimeout(timer);
      timer = window.setTimeout(() => end({ step: "failed", reason }), ms);
    };
    stop.addEventListener("abort", onStop);
    let clockStarted = false;
    worker.onmessage = (message: MessageEvent<unknown>) => {
      const parsed = parseWorkerMessage(message.data);
      if (parsed?.kind === "stage") {
        update({ step: parsed.stage });
        // Start the timeout only once: code in the worker must not extend it by posting `running`
        // again.
        if (parsed.stage === "running" && !clockStarted) {
          clockStarted = true;
          setTimer(limits.runMs, strings.analysis.tooLong(limits.runMs / 1000));
        }
      } else if (parsed?.kind === "loaded") update({ loaded: parsed.tables });
      else if (parsed?.kind === "done") end({ step: "done", rows: parsed.rows, output: parsed.output });
      else if (parsed?.kind === "failed") end({ step: "failed", reason: parsed.reason, output: parsed.output });
      // Terminate the worker on any unexpected message.
      else end({ step: "failed", reason: strings.analysis.noWorker });
    };
    worker.onerror = (event) => end({ step: "failed", reason: event.message || strings.analysis.noWorker });
    setTimer(limits.loadMs, strings.analysis.tooSlow);
    update({ step: "loading" });
    worker.postMessage(
      request,
      request.tables.map((table) => table.reply),
    );
  });
}
