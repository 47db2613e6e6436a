import type { Rows } from "../api";
import { limits } from "./limits";

/** A table to be sent to the worker: the server's response body, parsed only by Python. */
export interface TablePayload {
  name: string;
  reply: ArrayBuffer;
}

export interface AnalysisRequest {
  tables: TablePayload[];
  code: string;
}

/** Number of rows that Python loaded for a table. */
export interface LoadedTable {
  name: string;
  rows: number;
  truncated: boolean;
}

/** Progress messages of the worker. The last one is `done` or `failed`. */
export type WorkerMessage =
  | { kind: "stage"; stage: "loading" | "reading" | "running" }
  | { kind: "loaded"; tables: LoadedTable[] }
  | { kind: "done"; rows: Rows; output: string }
  | { kind: "failed"; reason: string; output: string };

/**
 * Validates a message of the worker. Model-written code runs there and may post anything, so only
 * messages of the expected shape are accepted; all others are ignored.
 */
export function parseWorkerMessage(message: unknown): WorkerMessage | null {
  if (!isObject(message)) return null;
  switch (message["kind"]) {
    case "stage": {
      const stage = message["stage"];
      return stage === "loading" || stage === "reading" || stage === "running" ? { kind: "stage", stage } : null;
    }
    case "loaded": {
      const tables = message["tables"];
      return Array.isArray(tables) && tables.every(isLoadedTable) ? { kind: "loaded", tables } : null;
    }
    case "done": {
      const rows = parseRows(message["rows"]);
      return rows && { kind: "done", rows, output: boundedText(message["output"]) };
    }
    case "failed":
      return { kind: "failed", reason: boundedText(message["reason"]), output: boundedText(message["output"]) };
    default:
      return null;
  }
}

/** Validates rows: each has one cell per column, and every cell is a scalar. */
export function parseRows(value: unknown): Rows | null {
  if (!isObject(value)) return null;
  const { columns, rows, truncated } = value;
  if (!Array.isArray(columns) || !columns.every((name) => typeof name === "string")) return null;
  if (!Array.isArray(rows) || typeof truncated !== "boolean") return null;
  // Limits are enforced outside the worker, and holes in arrays are checked like cells.
  if (rows.length > limits.resultRows || columns.length > limits.resultColumns) return null;
  for (let i = 0; i < rows.length; i++) {
    const row: unknown = rows[i];
    if (!Array.isArray(row) || row.length !== columns.length) return null;
    for (let j = 0; j < row.length; j++) if (!isCell(row[j])) return null;
  }
  return { columns, rows: rows as Rows["rows"], truncated };
}

function isCell(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.length <= limits.cellLength) || typeof value === "boolean" || typeof value === "number";
}

function isLoadedTable(value: unknown): value is LoadedTable {
  return isObject(value) && typeof value["name"] === "string" && typeof value["rows"] === "number" && typeof value["truncated"] === "boolean";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function boundedText(value: unknown): string {
  return typeof value === "string" ? value.slice(0, limits.outputLength) : "";
}
