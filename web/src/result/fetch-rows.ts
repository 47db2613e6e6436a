import { api, type Rows } from "../api";

/** Maximum number of rows in a table. */
export const maxRows = 100_000;
const pageSize = 10_000;

export interface RowSource {
  sql: string;
  database: string;
}

/** Runs the query again and fetches its rows page by page. */
export async function fetchRows({ sql, database }: RowSource, onProgress: (count: number) => void, signal: AbortSignal): Promise<Rows> {
  let page = await api.run({ sql, database, max_rows: maxRows }, pageSize, signal);
  const rows: Rows = { columns: page.rows.columns, rows: page.rows.rows, truncated: page.rows.truncated };
  onProgress(rows.rows.length);
  while (page.cursor) {
    page = await api.page(page.cursor, pageSize, signal);
    for (const row of page.rows.rows) rows.rows.push(row);
    rows.truncated = page.rows.truncated;
    onProgress(rows.rows.length);
  }
  return rows;
}
