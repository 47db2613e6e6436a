import type { Chart, Rows } from "../api";

/** Maximum number of bars that remain readable. */
const maxBars = 40;

/** Chooses a chart for a result by the server's rules; null if the table is clearer. */
export function chartFor({ columns, rows }: Rows): Chart | null {
  const isNumber = (column: number) => rows.some((row) => row[column] !== null) && rows.every((row) => row[column] === null || typeof row[column] === "number");
  if (columns.length === 1 && rows.length === 1 && isNumber(0)) return { kind: "figure", y: [0] };
  const isName = rows.every((row) => typeof row[0] === "string");
  if (columns.length === 2 && rows.length >= 2 && rows.length <= maxBars && isName && isNumber(1)) {
    const isDate = rows.every((row) => /^\d{4}-\d{2}(-\d{2})?$/.test(String(row[0])));
    return { kind: isDate ? "line" : "bar", x: 0, y: [1] };
  }
  return null;
}
