/** Thumbs beneath an answer. */
export function Verdict(_: { traceId: string; question: string; sql: string; database: string }) {
  return null;
}
