import { isKeyword, type Token, tokens } from "./tokens";

/** A token with its new place. `at` is still where it stood in the text as it was. */
export interface Laid extends Token {
  /** The white space in front of it now. */
  before: string;
}

export interface Formatted {
  text: string;
  laid: Laid[];
  /** From a place in the text as it was to the same place in the new one. */
  place: (at: number) => number;
}

const width = 72;
const step = "  ";
/** Words that begin a clause, and so a line. */
const clauses = new Set(
  "select from where group having order limit offset union intersect except with window qualify fetch values".split(" "),
);
/** Words that may stand in front of JOIN; the first of them begins the line. */
const joiners = new Set("join left right full inner cross natural outer".split(" "));

/**
 * Lays a query out over lines. Only white space between tokens is changed, so every finding can still be shown where it belongs, and the
 * query stays the same query.
 */
export function format(sql: string, dialect = ""): Formatted {
  const solid = tokens(sql, dialect).filter((token) => token.kind !== "space");
  const laid = layOut(solid);
  let text = "";
  const starts: number[] = [];
  for (const token of laid) {
    text += token.before;
    starts.push(text.length);
    text += token.text;
  }
  const place = (at: number): number => {
    let found = -1;
    // Queries are short; a search by halves would not be noticed.
    for (let i = 0; i < laid.length && (laid[i]?.at ?? 0) <= at; i++) found = i;
    const token = laid[found];
    const start = starts[found];
    if (!token || start === undefined) return 0;
    return start + Math.min(at - token.at, token.text.length);
  };
  return { text, laid, place };
}

/** A pair of brackets, or the whole query. */
interface Frame {
  /** How far its lines are moved in. */
  indent: number;
  /** It holds a query, not the arguments of a call. */
  query: boolean;
  clause: string;
  /** Items of the clause stand on lines of their own. */
  broken: boolean;
  between: boolean;
  /** For each CASE that is open: whether its branches stand on lines of their own. */
  cases: boolean[];
}

function layOut(solid: Token[]): Laid[] {
  const laid: Laid[] = [];
  const frames: Frame[] = [frame(0, true)];
  /** How far the line is moved in that is being written. */
  let margin = 0;
  solid.forEach((token, i) => {
    const previous = solid[i - 1];
    let top = frames[frames.length - 1] ?? frame(0, true);
    const word = token.kind === "word" ? token.text.toLowerCase() : "";
    const gap = previous !== undefined && previous.at + previous.text.length < token.at;
    let before = previous === undefined ? "" : spaceBetween(previous, token, gap);
    const line = (indent: number): string => (previous === undefined ? "" : `\n${step.repeat(Math.max(0, indent))}`);

    if (token.text === ")" && frames.length > 1) {
      frames.pop();
      if (top.query) before = line(top.indent - 1);
      top = frames[frames.length - 1] ?? top;
    } else if (top.query && previous?.text === "(" && frames.length > 1) {
      before = line(top.indent);
    }

    const afterBracket = previous?.text === "(" && frames.length > 1;
    if (top.query && word && token.text !== ")") {
      const begins = clauses.has(word) && !continues(word, previous);
      if (begins) {
        if (!afterBracket) before = line(top.indent);
        top.clause = word;
        top.between = false;
        top.broken = word === "select" && lengthOfClause(solid, i) > width;
      } else if (joiners.has(word) && solid[i + 1]?.text !== "(" && !joiners.has(previous?.text.toLowerCase() ?? "")) {
        before = line(top.indent);
        top.clause = "join";
      } else if (word === "between") top.between = true;
      else if ((word === "and" || word === "or") && top.cases.length === 0) {
        if (word === "and" && top.between) top.between = false;
        else if (["where", "having", "qualify", "join"].includes(top.clause)) before = line(top.indent + 1);
      }
    }
    if (word === "case") top.cases.push(lengthOfCase(solid, i) > width);
    else if (top.cases.length > 0 && (word === "when" || word === "else" || word === "end")) {
      if (top.cases[top.cases.length - 1]) before = line(top.indent + top.cases.length + (word === "end" ? 0 : 1));
      if (word === "end") top.cases.pop();
    }
    if (previous?.text === "," && top.query && top.broken && top.clause === "select") before = line(top.indent + 1);
    if (previous?.text === "," && top.query && top.clause === "with") before = line(top.indent);
    if (previous?.kind === "comment" && previous.text.startsWith("--")) before = before.startsWith("\n") ? before : line(top.indent + 1);

    if (before.startsWith("\n")) margin = (before.length - 1) / step.length;
    laid.push({ ...token, before });
    if (token.text === "(") {
      const inside = solid.slice(i + 1).find((one) => one.kind !== "comment" && one.text !== "(")?.text.toLowerCase();
      const query = inside === "select" || inside === "with";
      frames.push(frame(query ? margin + 1 : top.indent, query));
    }
  });
  return laid;
}

function frame(indent: number, query: boolean): Frame {
  return { indent, query, clause: "", broken: false, between: false, cases: [] };
}

/** Words that begin a clause elsewhere: `DISTINCT FROM`, `UNION ALL SELECT` and the like stay as they are. */
function continues(word: string, previous: Token | undefined): boolean {
  const before = previous?.text.toLowerCase() ?? "";
  return (word === "from" && before === "distinct") || before === "." || (word === "group" && before === "within");
}

function spaceBetween(previous: Token, token: Token, gap: boolean): string {
  if (token.text === "," || token.text === ")" || previous.text === "(") return "";
  if (previous.text === ",") return " ";
  if (gap) return " ";
  const stuck = previous.text === ")" && token.kind === "word" && isKeyword(token.text);
  return stuck ? " " : "";
}

/** How long the items behind SELECT are on one line. */
function lengthOfClause(solid: Token[], from: number): number {
  let depth = 0;
  let length = 0;
  for (let i = from + 1; i < solid.length; i++) {
    const token = solid[i];
    if (!token) break;
    if (token.text === "(") depth++;
    else if (token.text === ")" && --depth < 0) break;
    if (depth === 0 && token.kind === "word" && clauses.has(token.text.toLowerCase())) break;
    length += token.text.length + 1;
  }
  return length;
}

function lengthOfCase(solid: Token[], from: number): number {
  let depth = 0;
  let length = 0;
  for (let i = from; i < solid.length; i++) {
    const word = solid[i]?.text.toLowerCase() ?? "";
    length += word.length + 1;
    if (word === "case") depth++;
    else if (word === "end" && --depth === 0) break;
  }
  return length;
}
