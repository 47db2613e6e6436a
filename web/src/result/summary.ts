import type { Rows } from "../api";
import { strings } from "../strings";
import { formatNumber, isNumericColumn, cellText } from "./text";

const maxLength = 80;

/** Summarizes rows in one line. */
export function summarizeRows(rows: Rows): string {
  const { columns } = rows;
  const labels = strings.result;
  const first = rows.rows[0];
  if (!first || columns.length === 0) return labels.noRows;
  if (rows.rows.length === 1) {
    if (columns.length === 1) return labels.oneCell(readableName(columns[0] ?? ""), cellSummary(first[0]));
    if (columns.length <= 4) return columns.map((name, i) => labels.oneCell(readableName(name), cellSummary(first[i]))).join(" · ");
    return labels.oneRow(columns.length);
  }
  const names = columns.map(readableName);
  const listed = names.length <= 4 ? joinNames(names) : labels.andMore(names.slice(0, 3).join(", "), names.length - 3);
  const count = rows.truncated ? labels.firstRows(formatNumber(rows.rows.length)) : labels.rows(formatNumber(rows.rows.length));
  const counted = labels.rowsOf(count, listed);
  const largest = rows.truncated ? null : largestRow(rows);
  return largest ? `${counted}. ${largest}` : counted;
}

/** Describes the largest value of a two-column result. Null if several rows tie. */
function largestRow(rows: Rows): string | null {
  if (rows.columns.length !== 2 || rows.rows.length > 1000) return null;
  if (isNumericColumn(rows, 0) || !isNumericColumn(rows, 1)) return null;
  let best = -1;
  let tie = false;
  rows.rows.forEach((row, i) => {
    const value = row[1];
    if (value === null || value === undefined) return;
    const before = best < 0 ? Number.NEGATIVE_INFINITY : Number(rows.rows[best]?.[1]);
    if (Number(value) === before) tie = true;
    if (Number(value) > before) {
      best = i;
      tie = false;
    }
  });
  const row = rows.rows[best];
  if (!row || tie || row[0] === null) return null;
  return strings.result.largest(readableName(rows.columns[1] ?? ""), cellSummary(row[0]), cellSummary(row[1]));
}

/**
 * Replaces underscores in identifiers: `mean_price` becomes `mean price`. Expressions stay as they
 * are.
 */
function readableName(name: string): string {
  const cut = name.length > maxLength ? `${name.slice(0, maxLength)}…` : name;
  return /^\w+$/.test(cut) ? cut.replaceAll("_", " ").trim() || cut : cut;
}

function cellSummary(cell: Rows["rows"][number][number] | undefined): string {
  if (cell === null || cell === undefined) return strings.result.null;
  const text = typeof cell === "number" ? formatNumber(cell) : cellText(cell);
  return text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
}

function joinNames(names: string[]): string {
  if (names.length < 2) return names.join("");
  return strings.result.and(names.slice(0, -1).join(", "), names[names.length - 1] ?? "");
}
