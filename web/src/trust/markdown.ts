/**
 * Block of a rule page. Only the syntax used by rule pages is supported; everything else is plain
 * text.
 */
export type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "paragraph"; text: string }
  | { kind: "list"; ordered: boolean; items: string[] }
  | { kind: "quote"; text: string }
  | { kind: "table"; head: string[]; rows: string[][] }
  | { kind: "code"; info: string; text: string };

export type Inline = { kind: "text" | "code" | "strong" | "emphasis"; text: string };

export function parseBlocks(markdown: string): Block[] {
  const found: Block[] = [];
  const lines = markdown.replace(/\r\n?/g, "\n").split("\n");
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const fence = /^(`{3,}|~{3,})\s*(.*)$/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) at++;
    else if (fence) {
      const close = lines.findIndex((other, i) => i > at && other.trim().startsWith(fence[1] ?? "```"));
      const end = close < 0 ? lines.length : close;
      found.push({ kind: "code", info: (fence[2] ?? "").trim(), text: lines.slice(at + 1, end).join("\n") });
      at = end + 1;
    } else if (heading) {
      found.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
      at++;
    } else if (listItem.test(line)) {
      const [list, next] = parseList(lines, at);
      found.push(list);
      at = next;
    } else if (line.startsWith("|") && /^\|[\s:|-]+\|?\s*$/.test(lines[at + 1] ?? "")) {
      const end = blockEnd(lines, at, (other) => !other.startsWith("|"));
      const rows = lines.slice(at, end).map(tableCells);
      found.push({ kind: "table", head: rows[0] ?? [], rows: rows.slice(2) });
      at = end;
    } else if (line.startsWith(">")) {
      const end = blockEnd(lines, at, (other) => !other.startsWith(">"));
      found.push({ kind: "quote", text: joinLines(lines.slice(at, end).map((one) => one.replace(/^>\s?/, ""))) });
      at = end;
    } else {
      const end = blockEnd(lines, at, (other) => !other.trim() || /^(#{1,6}\s|`{3}|~{3}|>|\|)/.test(other) || listItem.test(other));
      found.push({ kind: "paragraph", text: joinLines(lines.slice(at, end)) });
      at = end;
    }
  }
  return found;
}

const listItem = /^\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+/;

function parseList(lines: string[], from: number): [Block, number] {
  const items: string[] = [];
  let at = from;
  for (; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (listItem.test(line)) items.push(line.replace(listItem, ""));
    else if (/^\s{2,}\S/.test(line)) items[items.length - 1] += ` ${line.trim()}`;
    else break;
  }
  return [{ kind: "list", ordered: /^\s*\d/.test(lines[from] ?? ""), items }, at];
}

/**
 * Returns the first line after `from` at which another block starts. Always advances by at least
 * one line.
 */
function blockEnd(lines: string[], from: number, ends: (line: string) => boolean): number {
  let at = from + 1;
  while (at < lines.length && !ends(lines[at] ?? "")) at++;
  return at;
}

function joinLines(lines: string[]): string {
  return lines.map((line) => line.trim()).join(" ");
}

function tableCells(line: string): string[] {
  return line.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim());
}

/** Parses inline code, strong and emphasis. Links are reduced to their text. */
export function parseInlines(text: string): Inline[] {
  const found: Inline[] = [];
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\([^)]*\)/g;
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) found.push({ kind: "text", text: text.slice(at, match.index) });
    const [, code, strong, emphasis, link] = match;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (strong !== undefined) found.push({ kind: "strong", text: strong });
    else if (emphasis !== undefined) found.push({ kind: "emphasis", text: emphasis });
    else found.push({ kind: "text", text: link ?? "" });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ kind: "text", text: text.slice(at) });
  return found;
}
