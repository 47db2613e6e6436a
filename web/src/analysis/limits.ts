/** What an analysis in the browser may take. The code comes from a model: whatever it does ends here. */
export const limits = {
  /** Rows of one table. */
  rows: 100_000,
  /** What all tables may weigh together, as the server sends them. */
  bytes: 64 * 1024 * 1024,
  /** Memory of Python with everything in it. */
  memory: 768 * 1024 * 1024,
  /** The code itself. */
  runMs: 30_000,
  /** Fetching and starting Python, which can take long on a slow line. */
  loadMs: 180_000,
  /** Rows of the result that are shown. */
  resultRows: 10_000,
  /** Columns of the result. */
  resultColumns: 1_000,
  /** Letters of one cell of it. */
  cell: 10_000,
  /** Signs that the code may print. */
  printed: 20_000,
} as const;
