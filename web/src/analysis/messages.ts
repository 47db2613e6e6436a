import type { Rows } from "../api";
import { limits } from "./limits";

/** A table on its way to Python: the server's reply as it came, which nobody but Python reads. */
export interface Sent {
  name: string;
  reply: ArrayBuffer;
}

export interface Order {
  tables: Sent[];
  code: string;
}

/** How many rows of a table arrived. */
export interface Arrived {
  name: string;
  rows: number;
  truncated: boolean;
}

/** What the worker tells while it works. The last one is `done` or `failed`. */
export type Word =
  | { kind: "stage"; stage: "loading" | "reading" | "running" }
  | { kind: "arrived"; tables: Arrived[] }
  | { kind: "done"; rows: Rows; printed: string }
  | { kind: "failed"; why: string; printed: string };

/**
 * Reads a word of the worker. Code that a model wrote runs there and could say anything, so that only what has the right shape is
 * taken; the rest is as if it had not been said.
 */
export function readWord(said: unknown): Word | null {
  if (!isObject(said)) return null;
  switch (said["kind"]) {
    case "stage": {
      const stage = said["stage"];
      return stage === "loading" || stage === "reading" || stage === "running" ? { kind: "stage", stage } : null;
    }
    case "arrived": {
      const tables = said["tables"];
      return Array.isArray(tables) && tables.every(isArrived) ? { kind: "arrived", tables } : null;
    }
    case "done": {
      const rows = readRows(said["rows"]);
      return rows && { kind: "done", rows, printed: text(said["printed"]) };
    }
    case "failed":
      return { kind: "failed", why: text(said["why"]), printed: text(said["printed"]) };
    default:
      return null;
  }
}

/** A table with as many cells in each row as it has columns, and nothing but plain values in them. */
export function readRows(value: unknown): Rows | null {
  if (!isObject(value)) return null;
  const { columns, rows, truncated } = value;
  if (!Array.isArray(columns) || !columns.every((name) => typeof name === "string")) return null;
  if (!Array.isArray(rows) || typeof truncated !== "boolean") return null;
  // The bounds are kept where the code cannot change them, and gaps in a list are cells like any other.
  if (rows.length > limits.resultRows || columns.length > limits.resultColumns) return null;
  for (let i = 0; i < rows.length; i++) {
    const row: unknown = rows[i];
    if (!Array.isArray(row) || row.length !== columns.length) return null;
    for (let j = 0; j < row.length; j++) if (!isCell(row[j])) return null;
  }
  return { columns, rows: rows as Rows["rows"], truncated };
}

function isCell(value: unknown): boolean {
  return value === null || (typeof value === "string" && value.length <= limits.cell) || typeof value === "boolean" || typeof value === "number";
}

function isArrived(value: unknown): value is Arrived {
  return isObject(value) && typeof value["name"] === "string" && typeof value["rows"] === "number" && typeof value["truncated"] === "boolean";
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, limits.printed) : "";
}
