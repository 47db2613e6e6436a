import type { Chart, Rows } from "../api";

/** Where the rows can be fetched again, for more of them and for other formats. Without it only what is here can be exported. */
export interface Source {
  sql: string;
  database: string;
}

/** Rows as a table, with the picture that fits them. */
export function ResultView(_: { rows: Rows; chart?: Chart | null; source?: Source; text?: string | null }) {
  return null;
}
