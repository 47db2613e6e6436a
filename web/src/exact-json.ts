/** Reviver with the source text of each value, which only newer browsers pass. */
type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Parses JSON without losing digits: integers beyond the safe range become strings. The slower
 * reviver is used only if the text contains such numbers.
 */
export function parseExactJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const keepDigits: Reviver = (_, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value) || !context?.source) return value;
    return /^-?\d+$/.test(context.source) ? context.source : value;
  };
  return JSON.parse(text, keepDigits as (key: string, value: unknown) => unknown);
}
