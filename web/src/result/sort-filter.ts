import type { Cell, Rows } from "../api";
import { isNumericColumn, cellText } from "./text";

/** Maximum time before yielding to the browser, in milliseconds. */
const maxSliceMs = 12;

export interface SortOrder {
  column: number;
  descending: boolean;
}

/** A newer sort or filter request replaced this one. */
export class Superseded extends Error {}

/**
 * Returns the indices of the matching rows in display order. Works in time slices, so that 100,000
 * rows do not block the page; `signal` aborts it.
 */
export async function sortAndFilter(rows: Rows, filter: string, order: SortOrder | null, signal: AbortSignal): Promise<Uint32Array> {
  const yieldToBrowser = yielder(signal);
  const matched = await filterRows(rows, filter, yieldToBrowser);
  return order ? await mergeSort(rows, matched, order, yieldToBrowser) : matched;
}

type YieldToBrowser = () => Promise<void> | undefined;

/** Returns a function that yields to the event loop once the time slice is used up. */
function yielder(signal: AbortSignal): YieldToBrowser {
  let sliceStart = performance.now();
  return () => {
    if (signal.aborted) throw new Superseded();
    if (performance.now() - sliceStart < maxSliceMs) return undefined;
    return new Promise<void>((resolve) => setTimeout(resolve)).then(() => {
      sliceStart = performance.now();
    });
  };
}

/** Returns rows that contain every term of the filter in any column. */
async function filterRows(rows: Rows, filter: string, yieldToBrowser: YieldToBrowser): Promise<Uint32Array> {
  const terms = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const matched = new Uint32Array(rows.rows.length);
  let count = 0;
  for (let i = 0; i < rows.rows.length; i++) {
    if (i % 256 === 0) await yieldToBrowser();
    const row = rows.rows[i];
    if (terms.length === 0 || (row && matches(row, terms))) matched[count++] = i;
  }
  return matched.subarray(0, count);
}

function matches(row: readonly Cell[], terms: readonly string[]): boolean {
  const texts = row.map((cell) => cellText(cell).toLowerCase());
  return terms.every((term) => texts.some((text) => text.includes(term)));
}

const collator = new Intl.Collator("en");

/**
 * Bottom-up merge sort: stable, and able to yield at any point. NULL sorts last in both directions.
 */
async function mergeSort(rows: Rows, indices: Uint32Array, { column, descending }: SortOrder, yieldToBrowser: YieldToBrowser): Promise<Uint32Array> {
  const byNumber = isNumericColumn(rows, column);
  const keys: (number | string | null)[] = new Array(rows.rows.length);
  for (let i = 0; i < keys.length; i++) {
    if (i % 1024 === 0) await yieldToBrowser();
    const cell = rows.rows[i]?.[column];
    keys[i] = cell === null || cell === undefined ? null : byNumber ? Number(cell) : cellText(cell);
  }
  const sortsAfter = (a: number, b: number): boolean => {
    const x = keys[a] ?? null;
    const y = keys[b] ?? null;
    if (x === null || y === null) return x === null && y !== null;
    const order = typeof x === "number" && typeof y === "number" ? x - y : compareText(String(x), String(y));
    return descending ? order < 0 : order > 0;
  };
  let from = indices.slice();
  let to = new Uint32Array(indices.length);
  let work = 0;
  for (let run = 1; run < from.length; run *= 2) {
    for (let start = 0; start < from.length; start += 2 * run) {
      const middle = Math.min(start + run, from.length);
      const end = Math.min(start + 2 * run, from.length);
      for (let left = start, right = middle, out = start; out < end; out++) {
        if (++work % 1024 === 0) await yieldToBrowser();
        const takeRight = left >= middle || (right < end && sortsAfter(from[left] ?? 0, from[right] ?? 0));
        to[out] = (takeRight ? from[right++] : from[left++]) ?? 0;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Checks equality first: equal strings are common, and collation is slow. */
function compareText(x: string, y: string): number {
  return x === y ? 0 : collator.compare(x, y);
}
