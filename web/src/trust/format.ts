import { isKeyword, type Token, tokenize } from "./tokens";

/** Token with its new whitespace. `offset` refers to the original text. */
export interface FormattedToken extends Token {
  /** Whitespace before the token in the formatted text. */
  leading: string;
}

export interface Formatted {
  text: string;
  tokens: FormattedToken[];
  /** Maps an offset of the original text to the formatted text. */
  mapOffset: (at: number) => number;
}

const maxLineWidth = 72;
const indentUnit = "  ";
/** Keywords that start a clause, and thus a line. */
const clauseKeywords = new Set(
  "select from where group having order limit offset union intersect except with window qualify fetch values".split(" "),
);
/** Keywords of a join; the first one starts the line. */
const joinKeywords = new Set("join left right full inner cross natural outer".split(" "));

/**
 * Formats a query. Changes only whitespace between tokens, so the query stays the same and findings
 * can be mapped.
 */
export function format(sql: string, dialect = ""): Formatted {
  const codeTokens = tokenize(sql, dialect).filter((token) => token.kind !== "space");
  const formatted = formatTokens(codeTokens);
  let text = "";
  const starts: number[] = [];
  for (const token of formatted) {
    text += token.leading;
    starts.push(text.length);
    text += token.text;
  }
  const mapOffset = (at: number): number => {
    let index = -1;
    // A linear search is fast enough for queries.
    for (let i = 0; i < formatted.length && (formatted[i]?.offset ?? 0) <= at; i++) index = i;
    const token = formatted[index];
    const start = starts[index];
    if (!token || start === undefined) return 0;
    return start + Math.min(at - token.offset, token.text.length);
  };
  return { text, tokens: formatted, mapOffset };
}

/** Parenthesis level, or the whole query. */
interface Frame {
  /** Indentation of its lines. */
  indent: number;
  /** Whether it contains a subquery rather than arguments. */
  query: boolean;
  clause: string;
  /** Whether each item of the clause gets its own line. */
  splitItems: boolean;
  between: boolean;
  /** For each open CASE: whether its branches get their own lines. */
  cases: boolean[];
}

function formatTokens(codeTokens: Token[]): FormattedToken[] {
  const formatted: FormattedToken[] = [];
  const frames: Frame[] = [newFrame(0, true)];
  /** Indentation of the current line. */
  let margin = 0;
  codeTokens.forEach((token, i) => {
    const previous = codeTokens[i - 1];
    let top = frames[frames.length - 1] ?? newFrame(0, true);
    const word = token.kind === "word" ? token.text.toLowerCase() : "";
    const hasGap = previous !== undefined && previous.offset + previous.text.length < token.offset;
    let leading = previous === undefined ? "" : spaceBetween(previous, token, hasGap);
    const newline = (indent: number): string => (previous === undefined ? "" : `\n${indentUnit.repeat(Math.max(0, indent))}`);

    if (token.text === ")" && frames.length > 1) {
      frames.pop();
      if (top.query) leading = newline(top.indent - 1);
      top = frames[frames.length - 1] ?? top;
    } else if (top.query && previous?.text === "(" && frames.length > 1) {
      leading = newline(top.indent);
    }

    const isAfterBracket = previous?.text === "(" && frames.length > 1;
    if (top.query && word && token.text !== ")") {
      const startsClause = clauseKeywords.has(word) && !isContinuation(word, previous);
      if (startsClause) {
        if (!isAfterBracket) leading = newline(top.indent);
        top.clause = word;
        top.between = false;
        top.splitItems = word === "select" && clauseLength(codeTokens, i) > maxLineWidth;
      } else if (joinKeywords.has(word) && codeTokens[i + 1]?.text !== "(" && !joinKeywords.has(previous?.text.toLowerCase() ?? "")) {
        leading = newline(top.indent);
        top.clause = "join";
      } else if (word === "between") top.between = true;
      else if ((word === "and" || word === "or") && top.cases.length === 0) {
        if (word === "and" && top.between) top.between = false;
        else if (["where", "having", "qualify", "join"].includes(top.clause)) leading = newline(top.indent + 1);
      }
    }
    if (word === "case") top.cases.push(caseLength(codeTokens, i) > maxLineWidth);
    else if (top.cases.length > 0 && (word === "when" || word === "else" || word === "end")) {
      if (top.cases[top.cases.length - 1]) leading = newline(top.indent + top.cases.length + (word === "end" ? 0 : 1));
      if (word === "end") top.cases.pop();
    }
    if (previous?.text === "," && top.query && top.splitItems && top.clause === "select") leading = newline(top.indent + 1);
    if (previous?.text === "," && top.query && top.clause === "with") leading = newline(top.indent);
    if (previous?.kind === "comment" && previous.text.startsWith("--")) leading = leading.startsWith("\n") ? leading : newline(top.indent + 1);

    if (leading.startsWith("\n")) margin = (leading.length - 1) / indentUnit.length;
    formatted.push({ ...token, leading });
    if (token.text === "(") {
      const inside = codeTokens.slice(i + 1).find((one) => one.kind !== "comment" && one.text !== "(")?.text.toLowerCase();
      const query = inside === "select" || inside === "with";
      frames.push(newFrame(query ? margin + 1 : top.indent, query));
    }
  });
  return formatted;
}

function newFrame(indent: number, query: boolean): Frame {
  return { indent, query, clause: "", splitItems: false, between: false, cases: [] };
}

/** Returns whether a keyword continues a clause instead of starting one, as in `DISTINCT FROM`. */
function isContinuation(word: string, previous: Token | undefined): boolean {
  const previousWord = previous?.text.toLowerCase() ?? "";
  return (word === "from" && previousWord === "distinct") || previousWord === "." || (word === "group" && previousWord === "within");
}

function spaceBetween(previous: Token, token: Token, gap: boolean): string {
  if (token.text === "," || token.text === ")" || previous.text === "(") return "";
  if (previous.text === ",") return " ";
  if (gap) return " ";
  const needsSpace = previous.text === ")" && token.kind === "word" && isKeyword(token.text);
  return needsSpace ? " " : "";
}

/** Returns the length of the SELECT list on one line. */
function clauseLength(codeTokens: Token[], from: number): number {
  let depth = 0;
  let length = 0;
  for (let i = from + 1; i < codeTokens.length; i++) {
    const token = codeTokens[i];
    if (!token) break;
    if (token.text === "(") depth++;
    else if (token.text === ")" && --depth < 0) break;
    if (depth === 0 && token.kind === "word" && clauseKeywords.has(token.text.toLowerCase())) break;
    length += token.text.length + 1;
  }
  return length;
}

function caseLength(codeTokens: Token[], from: number): number {
  let depth = 0;
  let length = 0;
  for (let i = from; i < codeTokens.length; i++) {
    const word = codeTokens[i]?.text.toLowerCase() ?? "";
    length += word.length + 1;
    if (word === "case") depth++;
    else if (word === "end" && --depth === 0) break;
  }
  return length;
}
