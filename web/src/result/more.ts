import { api, type Rows } from "../api";

/** As many rows as a table here shows. */
export const mostRows = 100_000;
const pageSize = 10_000;

export interface Source {
  sql: string;
  database: string;
}

/** Runs the query again and fetches its rows page by page. */
export async function fetchRows({ sql, database }: Source, tell: (count: number) => void, signal: AbortSignal): Promise<Rows> {
  let page = await api.run({ sql, database, max_rows: mostRows }, pageSize, signal);
  const rows: Rows = { columns: page.rows.columns, rows: page.rows.rows, truncated: page.rows.truncated };
  tell(rows.rows.length);
  while (page.cursor) {
    page = await api.page(page.cursor, pageSize, signal);
    for (const row of page.rows.rows) rows.rows.push(row);
    rows.truncated = page.rows.truncated;
    tell(rows.rows.length);
  }
  return rows;
}
