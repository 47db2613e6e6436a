/** What newer browsers tell about each value that is read: the text that it was written as. */
type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Reads JSON without losing digits: whole numbers that a float cannot hold become texts. It takes longer, so it is done only where there
 * are such numbers.
 */
export function exactJson(text: string): unknown {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  const keep: Reviver = (_, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value) || !context?.source) return value;
    return /^-?\d+$/.test(context.source) ? context.source : value;
  };
  return JSON.parse(text, keep as (key: string, value: unknown) => unknown);
}
