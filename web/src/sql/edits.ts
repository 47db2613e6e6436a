import type { Fix } from "../api";
import { byteToUtf16 } from "../utf8-offsets";

/** Replacement in UTF-16 offsets. */
export interface Replacement {
  start: number;
  end: number;
  text: string;
}

/** Converts the edits of a fix, last one first, so that offsets stay valid. */
export function replacements(sql: string, edits: Fix["edits"]): Replacement[] {
  return edits
    .map(({ span, text }) => ({ start: byteToUtf16(sql, span.start), end: byteToUtf16(sql, span.end), text }))
    .sort((a, b) => b.start - a.start || b.end - a.end);
}

export function applyEdits(sql: string, edits: Fix["edits"]): string {
  return replacements(sql, edits).reduce((text, { start, end, text: replacement }) => text.slice(0, start) + replacement + text.slice(end), sql);
}
