import type { Finding } from "../api";
import { byteOfUnit, unitOfByte } from "../bytes";

/** A piece of a text, in UTF-16 units. */
export interface Piece {
  start: number;
  end: number;
}

/** Where a finding stands in the very text that was reviewed. */
export function exactly(finding: Pick<Finding, "span">, sql: string): Piece {
  return { start: unitOfByte(sql, finding.span.start), end: unitOfByte(sql, finding.span.end) };
}

/**
 * Where a finding stands in a query that was cut out of a longer text, such as a model's draft with a fence around it: its span may count
 * from the beginning of that text. A place is only believed if what the finding is about stands there.
 */
export function placeIn(finding: Pick<Finding, "span" | "subject">, sql: string, draft = ""): Piece | null {
  const { subject } = finding;
  const here = exactly(finding, sql);
  if (subject && sql.slice(here.start, here.end).includes(subject)) return here;
  const cut = draft.indexOf(sql.trim());
  if (cut >= 0) {
    const moved = byteOfUnit(draft, cut);
    const span = { start: finding.span.start - moved, end: finding.span.end - moved };
    if (span.start >= 0) {
      const there = exactly({ span }, sql);
      if (there.end > there.start && (!subject || sql.slice(there.start, there.end).includes(subject))) return there;
    }
  }
  const only = subject ? sql.indexOf(subject) : -1;
  if (only < 0 || sql.indexOf(subject, only + 1) >= 0) return null;
  return { start: only, end: only + subject.length };
}

/** A query cut where marks begin and end. */
export interface Cut<M> extends Piece {
  mark: M | null;
}

/**
 * Cuts a text by marks. Where two of them overlap the shorter one is shown, being the more exact; a mark of no width is given the
 * character behind it, or before it at the end.
 */
export function cutBy<M>(length: number, marks: readonly { piece: Piece; mark: M }[]): Cut<M>[] {
  const wide = marks.map(({ piece, mark }) => ({ mark, ...widened(piece, length) })).filter((one) => one.end > one.start);
  const edges = new Set([0, length]);
  for (const { start, end } of wide) edges.add(start).add(end);
  const sorted = [...edges].sort((a, b) => a - b);
  const cuts: Cut<M>[] = [];
  sorted.slice(0, -1).forEach((start, i) => {
    const end = sorted[i + 1] ?? length;
    const over = wide.filter((one) => one.start <= start && one.end >= end).sort((a, b) => a.end - a.start - (b.end - b.start));
    const mark = over[0]?.mark ?? null;
    const last = cuts[cuts.length - 1];
    if (last && last.mark === mark) last.end = end;
    else cuts.push({ start, end, mark });
  });
  return cuts;
}

function widened({ start, end }: Piece, length: number): Piece {
  const from = Math.max(0, Math.min(start, length));
  const to = Math.max(from, Math.min(end, length));
  if (to > from) return { start: from, end: to };
  return to < length ? { start: from, end: to + 1 } : { start: Math.max(0, from - 1), end: to };
}
