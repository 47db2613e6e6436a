/**
 * Resource limits of an analysis in the browser. They must hold for any code, because a model wrote
 * it.
 */
export const limits = {
  /** Maximum number of rows per table. */
  rowsPerTable: 100_000,
  /** Maximum size of all tables together, in bytes as sent by the server. */
  totalBytes: 64 * 1024 * 1024,
  /** Maximum memory of the Python runtime, in bytes. */
  memoryBytes: 768 * 1024 * 1024,
  /** Timeout for the code, in milliseconds. */
  runMs: 30_000,
  /** Timeout for downloading and starting Python, in milliseconds. */
  loadMs: 180_000,
  /** Maximum number of rows in the result. */
  resultRows: 10_000,
  /** Maximum number of columns in the result. */
  resultColumns: 1_000,
  /** Maximum length of a cell of the result, in characters. */
  cellLength: 10_000,
  /** Maximum length of captured output, in characters. */
  outputLength: 20_000,
} as const;
