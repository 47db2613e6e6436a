import type { Cell, Rows } from "../api";

/** A cell as text. NULL is the empty text here; who shows it makes the difference visible. */
export function textOf(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  return String(cell);
}

/** A cell as it is shown: sums of floats are rid of the noise in their last digit. What is copied or exported keeps it. */
export function shownText(cell: Cell | undefined): string {
  return typeof cell === "number" && !Number.isInteger(cell) ? String(Number(cell.toPrecision(15))) : textOf(cell);
}

/** Longer texts are cut, so that a cell of megabytes does not slow a table. */
const longest = 200;

/** The beginning of a cell in one line, in which line breaks can be seen. */
export function truncatedText(cell: Cell | undefined): string {
  const text = shownText(cell);
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return short.replace(/\r?\n/g, " ↵ ");
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 20 });

/** A number for people: all digits stay, and thousands are marked where there are many. Four digits may be a year. */
export function figure(cell: Cell | undefined): string {
  const many = typeof cell === "number" && Math.abs(cell) >= 10_000 && Math.abs(cell) < 1e15;
  return many ? numbers.format(Number(cell.toPrecision(15))) : shownText(cell);
}

/** Columns whose cells are all numbers, also where a database wrote them digit by digit as text. */
export function numeric(rows: Rows, column: number, look = rows.rows.length): boolean {
  let any = false;
  for (let i = 0; i < rows.rows.length && i < look; i++) {
    const cell = rows.rows[i]?.[column];
    if (cell === null || cell === undefined) continue;
    // A number that begins with zeros is a code, and keeps its zeros.
    if (typeof cell !== "number" && !(typeof cell === "string" && /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(cell))) return false;
    any = true;
  }
  return any;
}

type Places = ArrayLike<number>;

/** A text that a spreadsheet would take for a formula, and run, is marked as the text that it is. Numbers stay numbers. */
function harmless(text: string): string {
  return /^[=+\-@\t\r]/.test(text) && !/^[+-]?[\d.,]+(?:[eE][+-]?\d+)?$/.test(text) ? `'${text}` : text;
}

/** Tab-separated, as spreadsheets take it from the clipboard. */
export function tsv(rows: Rows, places: Places, columns: readonly number[]): string {
  const clean = (text: string) => (/["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines(rows, places, columns, clean, "\t", "\n");
}

/** Comma-separated, as RFC 4180 says it. NULL is nothing, the empty text is a pair of quotes. */
export function csv(rows: Rows, places: Places, columns: readonly number[]): string {
  const clean = (text: string) => (text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return lines(rows, places, columns, clean, ",", "\r\n") + "\r\n";
}

function lines(rows: Rows, places: Places, columns: readonly number[], clean: (text: string) => string, comma: string, end: string): string {
  const found = [columns.map((column) => clean(harmless(rows.columns[column] ?? ""))).join(comma)];
  for (let i = 0; i < places.length; i++) {
    const row = rows.rows[places[i] ?? -1] ?? [];
    found.push(columns.map((column) => (row[column] === null ? "" : clean(harmless(textOf(row[column]))))).join(comma));
  }
  return found.join(end);
}
