import type { Cell, Rows } from "../api";

/** Converts a cell to text. NULL becomes an empty string. */
export function cellText(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  return String(cell);
}

/**
 * Converts a cell for display: rounds away floating-point noise. Copies and exports keep all
 * digits.
 */
export function displayText(cell: Cell | undefined): string {
  return typeof cell === "number" && !Number.isInteger(cell) ? String(Number(cell.toPrecision(15))) : cellText(cell);
}

/** Maximum displayed length, in characters: large cells would slow the table down. */
const maxCellLength = 200;

/** Truncated cell in one line, with visible line breaks. */
export function truncatedText(cell: Cell | undefined): string {
  const text = displayText(cell);
  const short = text.length > maxCellLength ? `${text.slice(0, maxCellLength)}…` : text;
  return short.replace(/\r?\n/g, " ↵ ");
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });

/** Formats a number with thousands separators from 10,000 on: four digits may be a year. */
export function formatNumber(cell: Cell | undefined): string {
  const many = typeof cell === "number" && Math.abs(cell) >= 10_000 && Math.abs(cell) < 1e15;
  return many ? numbers.format(Number(cell.toPrecision(15))) : displayText(cell);
}

/** Returns whether all cells of a column are numbers, including numbers encoded as text. */
export function isNumericColumn(rows: Rows, column: number, maxRows = rows.rows.length): boolean {
  let lines = false;
  for (let i = 0; i < rows.rows.length && i < maxRows; i++) {
    const cell = rows.rows[i]?.[column];
    if (cell === null || cell === undefined) continue;
    // Numbers with leading zeros are codes.
    if (typeof cell !== "number" && !(typeof cell === "string" && /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(cell))) return false;
    lines = true;
  }
  return lines;
}

type RowIndices = ArrayLike<number>;

/**
 * Prevents CSV injection: prefixes text that a spreadsheet would evaluate as a formula. Numbers
 * stay numbers.
 */
function escapeFormula(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+(?:[eE][+-]?\d+)?$/.test(text) ? `'${text}` : text;
}

/** Formats rows as tab-separated values for the clipboard. */
export function tsv(rows: Rows, rowIndices: RowIndices, columns: readonly number[]): string {
  const quote = (text: string) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return delimited(rows, rowIndices, columns, quote, "\t", "\n");
}

/** Formats rows as CSV (RFC 4180). NULL is an empty field, an empty string is a pair of quotes. */
export function csv(rows: Rows, rowIndices: RowIndices, columns: readonly number[]): string {
  const quote = (text: string) => (text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return delimited(rows, rowIndices, columns, quote, ",", "\r\n") + "\r\n";
}

function delimited(rows: Rows, rowIndices: RowIndices, columns: readonly number[], quote: (text: string) => string, separator: string, lineEnd: string): string {
  const found = [columns.map((column) => quote(escapeFormula(rows.columns[column] ?? ""))).join(separator)];
  for (let i = 0; i < rowIndices.length; i++) {
    const row = rows.rows[rowIndices[i] ?? -1] ?? [];
    found.push(columns.map((column) => (row[column] === null ? "" : quote(escapeFormula(cellText(row[column]))))).join(separator));
  }
  return found.join(lineEnd);
}
