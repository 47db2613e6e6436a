import type { Rows } from "../api";
import { strings } from "../strings";
import { figure, numeric, textOf } from "./text";

const longest = 80;

/** One line that says what the rows say, or at least what they are. */
export function inWords(rows: Rows): string {
  const { columns } = rows;
  const words = strings.result;
  const first = rows.rows[0];
  if (!first || columns.length === 0) return words.noRows;
  if (rows.rows.length === 1) {
    if (columns.length === 1) return words.oneCell(readable(columns[0] ?? ""), shown(first[0]));
    if (columns.length <= 4) return columns.map((name, i) => words.oneCell(readable(name), shown(first[i]))).join(" · ");
    return words.oneRow(columns.length);
  }
  const names = columns.map(readable);
  const listed = names.length <= 4 ? list(names) : words.andMore(names.slice(0, 3).join(", "), names.length - 3);
  const count = rows.truncated ? words.firstRows(figure(rows.rows.length)) : words.rows(figure(rows.rows.length));
  const about = words.rowsOf(count, listed);
  const most = rows.truncated ? null : largest(rows);
  return most ? `${about}. ${most}` : about;
}

/** Of names with one figure each: which has the largest. Only where all of them were seen. */
function largest(rows: Rows): string | null {
  if (rows.columns.length !== 2 || rows.rows.length > 1000) return null;
  if (numeric(rows, 0) || !numeric(rows, 1)) return null;
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
  return strings.result.largest(readable(rows.columns[1] ?? ""), shown(row[0]), shown(row[1]));
}

/** `mean_price` is read as `mean price`; a formula stays as it is. */
function readable(name: string): string {
  const cut = name.length > longest ? `${name.slice(0, longest)}…` : name;
  return /^\w+$/.test(cut) ? cut.replaceAll("_", " ").trim() || cut : cut;
}

function shown(cell: Rows["rows"][number][number] | undefined): string {
  if (cell === null || cell === undefined) return strings.result.null;
  const text = typeof cell === "number" ? figure(cell) : textOf(cell);
  return text.length > longest ? `${text.slice(0, longest)}…` : text;
}

function list(names: string[]): string {
  if (names.length < 2) return names.join("");
  return strings.result.and(names.slice(0, -1).join(", "), names[names.length - 1] ?? "");
}
