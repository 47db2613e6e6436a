import { format, type FormattedToken } from "./format";

/** Run of tokens: common to both queries, removed, or added. */
export interface Part {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Maximum size of the LCS table; beyond it the differing part is shown as replaced. */
const maxPairs = 4_000_000;

/** Token-based diff of two queries. Ignores whitespace. */
export function diff(before: string, after: string, dialect = ""): Part[] {
  const a = format(before, dialect).tokens;
  const b = format(after, dialect).tokens;
  let start = 0;
  while (start < a.length && start < b.length && a[start]?.text === b[start]?.text) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end]?.text === b[b.length - 1 - end]?.text) end++;

  const parts: Part[] = [];
  const add = (kind: Part["kind"], token: FormattedToken | undefined) => {
    if (!token) return;
    const last = parts[parts.length - 1];
    const space = parts.length === 0 ? "" : token.leading;
    if (last?.kind === kind) last.text += space + token.text;
    else {
      // Whitespace between runs counts as unchanged, so that it is not struck through.
      if (space) {
        if (last?.kind === "same") last.text += space;
        else if (kind !== "same") parts.push({ kind: "same", text: space });
      }
      parts.push({ kind, text: (kind === "same" && last?.kind !== "same" ? space : "") + token.text });
    }
  };
  for (let i = 0; i < start; i++) add("same", b[i]);
  const middle = longestCommonSubsequence(a.slice(start, a.length - end), b.slice(start, b.length - end));
  for (const [kind, token] of middle) add(kind, token);
  for (let i = b.length - end; i < b.length; i++) add("same", b[i]);
  return parts;
}

/** Aligns two token lists along their longest common subsequence (LCS). */
function longestCommonSubsequence(a: FormattedToken[], b: FormattedToken[]): [Part["kind"], FormattedToken][] {
  const removed = a.map((token): [Part["kind"], FormattedToken] => ["removed", token]);
  const added = b.map((token): [Part["kind"], FormattedToken] => ["added", token]);
  if (a.length * b.length > maxPairs) return [...removed, ...added];
  const columns = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * columns);
  const at = (i: number, j: number): number => lengths[i * columns + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * columns + j] = a[i]?.text === b[j]?.text ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const sequence: [Part["kind"], FormattedToken][] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const left = a[i];
    const right = b[j];
    if (left && right && left.text === right.text) {
      sequence.push(["same", right]);
      i++;
      j++;
    } else if (left && (!right || at(i + 1, j) >= at(i, j + 1))) {
      sequence.push(["removed", left]);
      i++;
    } else if (right) {
      sequence.push(["added", right]);
      j++;
    } else return sequence;
  }
}
