import { signal, type Signal } from "@preact/signals";
import { send, type Analysis, type Rows } from "../api";
import { strings } from "../strings";
import { limits } from "./limits";
import { readWord, type Arrived, type Order, type Sent } from "./messages";

export type Step = "fetching" | "loading" | "reading" | "running" | "done" | "failed" | "stopped";

/** How far an analysis has come. */
export interface Run {
  step: Step;
  /** Tables whose rows are here, of all that are fetched. */
  fetched: number;
  arrived: Arrived[];
  rows: Rows | null;
  printed: string;
  why: string;
}

export interface Running {
  run: Signal<Run>;
  stop: () => void;
}

const begun = new WeakMap<Analysis, Running>();

/** Begins the analysis of a plan; one that was begun before is not begun again, however often it is shown. */
export function analyse(plan: Analysis, database: string): Running {
  const before = begun.get(plan);
  if (before) return before;
  const run = signal<Run>({ step: "fetching", fetched: 0, arrived: [], rows: null, printed: "", why: "" });
  const stopping = new AbortController();
  const over = () => ["done", "failed", "stopped"].includes(run.value.step);
  const change = (changed: Partial<Run>) => {
    if (!over()) run.value = { ...run.value, ...changed };
  };
  const running = {
    run,
    stop() {
      change({ step: "stopped" });
      stopping.abort();
    },
  };
  begun.set(plan, running);
  fetchTables(plan, database, stopping.signal, (fetched) => change({ fetched }))
    .then((tables) => compute({ tables, code: plan.code }, stopping.signal, change))
    .catch((error: unknown) => change({ step: "failed", why: error instanceof Error ? error.message : String(error) }));
  return running;
}

/** The page fetches the rows, because it may; the worker that gets them knows neither the server's address nor who asks. */
async function fetchTables(plan: Analysis, database: string, stop: AbortSignal, tell: (fetched: number) => void): Promise<Sent[]> {
  // Where the server has no Python to give, it says how to get it before any row is on its way.
  await (await send("/pyodide/pyodide-lock.json", { signal: stop, accept: "*/*" })).body?.cancel();
  const tables: Sent[] = [];
  let left: number = limits.bytes;
  for (const { name, sql } of plan.tables) {
    const response = await send("/v1/run", { body: { sql, ...(database && { database }), max_rows: limits.rows }, signal: stop });
    const reply = await bounded(response, left);
    left -= reply.byteLength;
    tables.push({ name, reply });
    tell(tables.length);
  }
  return tables;
}

/** The body of a response, as long as it is not larger than it may be. */
async function bounded(response: Response, most: number): Promise<ArrayBuffer> {
  const reader = response.body?.getReader();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) break;
    size += piece.value.byteLength;
    if (size > most) {
      await reader?.cancel();
      throw new Error(strings.analysis.tooLarge(Math.round(limits.bytes / 1_048_576)));
    }
    pieces.push(piece.value);
  }
  return new Blob(pieces).arrayBuffer();
}

/** Hands the order to a worker of its own, which is ended as soon as it has answered, or takes too long, or is stopped. */
function compute(order: Order, stop: AbortSignal, change: (changed: Partial<Run>) => void): Promise<void> {
  return new Promise((resolve) => {
    if (stop.aborted) return resolve();
    const worker = new Worker(new URL("./analysis-worker.ts", import.meta.url), { type: "module", name: "analysis" });
    let timer = 0;
    const end = (changed: Partial<Run>) => {
      clearTimeout(timer);
      worker.terminate();
      stop.removeEventListener("abort", stopped);
      change(changed);
      resolve();
    };
    const stopped = () => end({ step: "stopped" });
    const within = (ms: number, why: string) => {
      clearTimeout(timer);
      timer = window.setTimeout(() => end({ step: "failed", why }), ms);
    };
    stop.addEventListener("abort", stopped);
    let timed = false;
    worker.onmessage = (message: MessageEvent<unknown>) => {
      const word = readWord(message.data);
      if (word?.kind === "stage") {
        change({ step: word.stage });
        // The clock of the code is set once: what runs in the worker cannot wind it up again by saying that it begins.
        if (word.stage === "running" && !timed) {
          timed = true;
          within(limits.runMs, strings.analysis.tooLong(limits.runMs / 1000));
        }
      } else if (word?.kind === "arrived") change({ arrived: word.tables });
      else if (word?.kind === "done") end({ step: "done", rows: word.rows, printed: word.printed });
      else if (word?.kind === "failed") end({ step: "failed", why: word.why, printed: word.printed });
      // What says anything else has gone astray, or means to stay.
      else end({ step: "failed", why: strings.analysis.noWorker });
    };
    worker.onerror = (event) => end({ step: "failed", why: event.message || strings.analysis.noWorker });
    within(limits.loadMs, strings.analysis.tooSlow);
    change({ step: "loading" });
    worker.postMessage(
      order,
      order.tables.map((table) => table.reply),
    );
  });
}
