import type { Cell, Rows } from "../api";
import { numeric, textOf } from "./text";

/** How long the page may be busy before it lets the browser draw, in milliseconds. */
const slice = 12;

export interface Sorting {
  column: number;
  down: boolean;
}

/** Somebody asked for another order or filter meanwhile. */
export class Overtaken extends Error {}

/**
 * The places of the rows that are shown, in the order in which they are shown. Works in slices, so that 100,000 rows never hold the page
 * up; `signal` ends it early.
 */
export async function arrange(rows: Rows, filter: string, sorting: Sorting | null, signal: AbortSignal): Promise<Uint32Array> {
  const pause = pauses(signal);
  const kept = await matching(rows, filter, pause);
  return sorting ? await sorted(rows, kept, sorting, pause) : kept;
}

type Pause = () => Promise<void> | undefined;

/** Lets others work whenever the slice is used up. */
function pauses(signal: AbortSignal): Pause {
  let begun = performance.now();
  return () => {
    if (signal.aborted) throw new Overtaken();
    if (performance.now() - begun < slice) return undefined;
    return new Promise<void>((resolve) => setTimeout(resolve)).then(() => {
      begun = performance.now();
    });
  };
}

/** Rows in which every word of the filter is found, in whichever column. */
async function matching(rows: Rows, filter: string, pause: Pause): Promise<Uint32Array> {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const kept = new Uint32Array(rows.rows.length);
  let count = 0;
  for (let i = 0; i < rows.rows.length; i++) {
    if (i % 256 === 0) await pause();
    const row = rows.rows[i];
    if (words.length === 0 || (row && matches(row, words))) kept[count++] = i;
  }
  return kept.subarray(0, count);
}

function matches(row: readonly Cell[], words: readonly string[]): boolean {
  const texts = row.map((cell) => textOf(cell).toLowerCase());
  return words.every((word) => texts.some((text) => text.includes(word)));
}

const collator = new Intl.Collator("en");

/** A merge sort, from small runs to large ones: it is stable, and it can pause anywhere. NULL comes last in both directions. */
async function sorted(rows: Rows, places: Uint32Array, { column, down }: Sorting, pause: Pause): Promise<Uint32Array> {
  const byNumber = numeric(rows, column);
  const keys: (number | string | null)[] = new Array(rows.rows.length);
  for (let i = 0; i < keys.length; i++) {
    if (i % 1024 === 0) await pause();
    const cell = rows.rows[i]?.[column];
    keys[i] = cell === null || cell === undefined ? null : byNumber ? Number(cell) : textOf(cell);
  }
  const after = (a: number, b: number): boolean => {
    const x = keys[a] ?? null;
    const y = keys[b] ?? null;
    if (x === null || y === null) return x === null && y !== null;
    const order = typeof x === "number" && typeof y === "number" ? x - y : compareText(String(x), String(y));
    return down ? order < 0 : order > 0;
  };
  let from = places.slice();
  let to = new Uint32Array(places.length);
  let work = 0;
  for (let run = 1; run < from.length; run *= 2) {
    for (let start = 0; start < from.length; start += 2 * run) {
      const middle = Math.min(start + run, from.length);
      const end = Math.min(start + 2 * run, from.length);
      for (let left = start, right = middle, out = start; out < end; out++) {
        if (++work % 1024 === 0) await pause();
        const takeRight = left >= middle || (right < end && after(from[left] ?? 0, from[right] ?? 0));
        to[out] = (takeRight ? from[right++] : from[left++]) ?? 0;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Equal texts are common in tables, and much faster to see than to collate. */
function compareText(x: string, y: string): number {
  return x === y ? 0 : collator.compare(x, y);
}
