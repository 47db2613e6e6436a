import type { Finding } from "../api";
import { utf16ToByte, byteToUtf16 } from "../utf8-offsets";

/** Range of a text in UTF-16 offsets. */
export interface TextRange {
  start: number;
  end: number;
}

/** Range of a finding in the text that was reviewed. */
export function findingRange(finding: Pick<Finding, "span">, sql: string): TextRange {
  return { start: byteToUtf16(sql, finding.span.start), end: byteToUtf16(sql, finding.span.end) };
}

/**
 * Locates a finding in a query that was extracted from a longer text, such as a model's reply: its
 * span may refer to that text. A range is accepted only if it contains the subject of the finding.
 */
export function locateFinding(finding: Pick<Finding, "span" | "subject">, sql: string, draft = ""): TextRange | null {
  const { subject } = finding;
  const exact = findingRange(finding, sql);
  if (subject && sql.slice(exact.start, exact.end).includes(subject)) return exact;
  const draftStart = draft.indexOf(sql.trim());
  if (draftStart >= 0) {
    const skippedBytes = utf16ToByte(draft, draftStart);
    const span = { start: finding.span.start - skippedBytes, end: finding.span.end - skippedBytes };
    if (span.start >= 0) {
      const shifted = findingRange({ span }, sql);
      if (shifted.end > shifted.start && (!subject || sql.slice(shifted.start, shifted.end).includes(subject))) return shifted;
    }
  }
  const first = subject ? sql.indexOf(subject) : -1;
  if (first < 0 || sql.indexOf(subject, first + 1) >= 0) return null;
  return { start: first, end: first + subject.length };
}

/** Part of a text with its mark. */
export interface MarkedRange<M> extends TextRange {
  mark: M | null;
}

/**
 * Splits a text at the boundaries of marks. The shortest of overlapping marks wins, being the most
 * specific. An empty mark is widened to the next character, or to the previous one at the end.
 */
export function splitByMarks<M>(length: number, marks: readonly { range: TextRange; mark: M }[]): MarkedRange<M>[] {
  const visible = marks.map(({ range, mark }) => ({ mark, ...visibleRange(range, length) })).filter((one) => one.end > one.start);
  const edges = new Set([0, length]);
  for (const { start, end } of visible) edges.add(start).add(end);
  const sorted = [...edges].sort((a, b) => a - b);
  const ranges: MarkedRange<M>[] = [];
  sorted.slice(0, -1).forEach((start, i) => {
    const end = sorted[i + 1] ?? length;
    const covering = visible.filter((one) => one.start <= start && one.end >= end).sort((a, b) => a.end - a.start - (b.end - b.start));
    const mark = covering[0]?.mark ?? null;
    const last = ranges[ranges.length - 1];
    if (last && last.mark === mark) last.end = end;
    else ranges.push({ start, end, mark });
  });
  return ranges;
}

function visibleRange({ start, end }: TextRange, length: number): TextRange {
  const from = Math.max(0, Math.min(start, length));
  const to = Math.max(from, Math.min(end, length));
  if (to > from) return { start: from, end: to };
  return to < length ? { start: from, end: to + 1 } : { start: Math.max(0, from - 1), end: to };
}
