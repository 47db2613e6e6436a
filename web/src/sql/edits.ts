import type { Fix } from "../api";
import { unitOfByte } from "../bytes";

/** One replacement, in UTF-16 units. */
export interface Replacement {
  start: number;
  end: number;
  text: string;
}

/** The edits of a fix, the last one first, so that none of them moves another. */
export function replacements(sql: string, edits: Fix["edits"]): Replacement[] {
  return edits
    .map(({ span, text }) => ({ start: unitOfByte(sql, span.start), end: unitOfByte(sql, span.end), text }))
    .sort((a, b) => b.start - a.start || b.end - a.end);
}

export function applied(sql: string, edits: Fix["edits"]): string {
  return replacements(sql, edits).reduce((text, { start, end, text: put }) => text.slice(0, start) + put + text.slice(end), sql);
}
