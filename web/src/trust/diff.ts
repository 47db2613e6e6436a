import { format, type Laid } from "./format";

/** A run of tokens that is in both queries, only in the one before, or only in the one after. */
export interface Part {
  kind: "same" | "removed" | "added";
  text: string;
}

/** More pairs than this are not compared: the whole middle is shown as replaced. */
const mostPairs = 4_000_000;

/** What changed between two queries, token by token. White space is no change. */
export function diff(before: string, after: string, dialect = ""): Part[] {
  const a = format(before, dialect).laid;
  const b = format(after, dialect).laid;
  let start = 0;
  while (start < a.length && start < b.length && a[start]?.text === b[start]?.text) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end]?.text === b[b.length - 1 - end]?.text) end++;

  const parts: Part[] = [];
  const add = (kind: Part["kind"], token: Laid | undefined) => {
    if (!token) return;
    const last = parts[parts.length - 1];
    const space = parts.length === 0 ? "" : token.before;
    if (last?.kind === kind) last.text += space + token.text;
    else {
      // The space between two runs belongs to neither, or it would be struck out with one of them.
      if (space) {
        if (last?.kind === "same") last.text += space;
        else if (kind !== "same") parts.push({ kind: "same", text: space });
      }
      parts.push({ kind, text: (kind === "same" && last?.kind !== "same" ? space : "") + token.text });
    }
  };
  for (let i = 0; i < start; i++) add("same", b[i]);
  const inside = common(a.slice(start, a.length - end), b.slice(start, b.length - end));
  for (const [kind, token] of inside) add(kind, token);
  for (let i = b.length - end; i < b.length; i++) add("same", b[i]);
  return parts;
}

/** The longest common run of tokens, and what is left over on both sides. */
function common(a: Laid[], b: Laid[]): [Part["kind"], Laid][] {
  const removed = a.map((token): [Part["kind"], Laid] => ["removed", token]);
  const added = b.map((token): [Part["kind"], Laid] => ["added", token]);
  if (a.length * b.length > mostPairs) return [...removed, ...added];
  const columns = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * columns);
  const at = (i: number, j: number): number => longest[i * columns + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * columns + j] = a[i]?.text === b[j]?.text ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const found: [Part["kind"], Laid][] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const left = a[i];
    const right = b[j];
    if (left && right && left.text === right.text) {
      found.push(["same", right]);
      i++;
      j++;
    } else if (left && (!right || at(i + 1, j) >= at(i, j + 1))) {
      found.push(["removed", left]);
      i++;
    } else if (right) {
      found.push(["added", right]);
      j++;
    } else return found;
  }
}
