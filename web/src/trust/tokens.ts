/** Kinds of tokens. The tokens of a query concatenate to its full text. */
export type TokenKind = "space" | "comment" | "string" | "quoted_identifier" | "number" | "word" | "operator";

export interface Token {
  kind: TokenKind;
  text: string;
  /** Offset in the tokenized text, in UTF-16 units. */
  offset: number;
}

/** Dialects in which a backslash escapes a quote in a string literal. */
const backslashDialects = new Set(["mysql", "mariadb", "bigquery", "spark", "databricks", "hive", "clickhouse", "snowflake"]);

/** Operators of several characters, longest first. */
const operators = ["<=>", "->>", "#>>", "!~*", "<>", "<=", ">=", "!=", "||", "::", "->", "#>", "!~", "~*", "@>", "<@", "=>", ":=", "&&"];

export function tokenize(sql: string, dialect = ""): Token[] {
  const result: Token[] = [];
  let offset = 0;
  while (offset < sql.length) {
    const [kind, end] = nextToken(sql, offset, backslashDialects.has(dialect));
    result.push({ kind, text: sql.slice(offset, end), offset });
    offset = end;
  }
  return result;
}

function nextToken(sql: string, offset: number, backslash: boolean): [TokenKind, number] {
  const matchEnd = (pattern: RegExp): number => {
    pattern.lastIndex = offset;
    return pattern.test(sql) ? pattern.lastIndex : -1;
  };
  const space = matchEnd(/\s+/y);
  if (space > 0) return ["space", space];
  if (sql.startsWith("--", offset)) return ["comment", indexAfter(sql, "\n", offset, false)];
  if (sql.startsWith("/*", offset)) return ["comment", indexAfter(sql, "*/", offset + 2, true)];
  const prefix = matchEnd(/(?:[eE]|[nN]|[bBxXrR]|[uU]&)'/y);
  if (prefix > 0) return ["string", quotedEnd(sql, prefix - 1, backslash || /[eE]/.test(sql[offset] ?? ""))];
  const dollar = /\$(?:[A-Za-z_]\w*)?\$/y;
  const tag = matchEnd(dollar);
  if (tag > 0) return ["string", indexAfter(sql, sql.slice(offset, tag), tag, true)];
  const first = sql[offset];
  if (first === "'") return ["string", quotedEnd(sql, offset, backslash)];
  if (first === '"' || first === "`") return ["quoted_identifier", quotedEnd(sql, offset, backslash && first === '"')];
  const bracketed = matchEnd(/\[[A-Za-z_][^\]\n]*\]/y);
  if (bracketed > 0 && !/[\w\])]/.test(sql[offset - 1] ?? "")) return ["quoted_identifier", bracketed];
  const number = matchEnd(/(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y);
  if (number > 0) return ["number", number];
  const word = matchEnd(/[\p{L}_@#$][\p{L}\p{N}_$#]*/uy);
  if (word > 0) return ["word", word];
  const operator = operators.find((one) => sql.startsWith(one, offset));
  if (operator) return ["operator", offset + operator.length];
  return ["operator", offset + ((sql.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1)];
}

/**
 * Returns the end of a quoted token. A doubled quote is an escape; an unterminated token ends with
 * the text.
 */
function quotedEnd(sql: string, at: number, backslash: boolean): number {
  const quote = sql[at];
  for (let i = at + 1; i < sql.length; i++) {
    if (backslash && sql[i] === "\\") i++;
    else if (sql[i] === quote) {
      if (sql[i + 1] !== quote) return i + 1;
      i++;
    }
  }
  return sql.length;
}

function indexAfter(sql: string, end: string, from: number, inclusive: boolean): number {
  const found = sql.indexOf(end, from);
  return found < 0 ? sql.length : found + (inclusive ? end.length : 0);
}

const keywords = new Set(
  (
    "all and any array as asc between by case cast collate cross current desc distinct else end escape except exists extract false fetch " +
    "filter first following for from full group groups having ilike in inner intersect interval into is join last lateral left like limit " +
    "materialized natural not null nulls offset on only or order outer over partition preceding qualify range recursive right rows select " +
    "set similar some symmetric table tablesample then ties to top true unbounded union unnest using values when where window with within"
  ).split(" "),
);

export function isKeyword(word: string): boolean {
  return keywords.has(word.toLowerCase());
}

/** Returns the CSS class of a token. A word followed by a parenthesis is a function call. */
export function tokenClass(token: Token, following: Token | undefined): string {
  switch (token.kind) {
    case "comment":
      return "sql-comment";
    case "string":
      return "sql-string";
    case "number":
      return "sql-number";
    case "word":
      if (isKeyword(token.text)) return "sql-keyword";
      return following?.text === "(" ? "sql-function" : "";
    case "space":
    case "quoted_identifier":
    case "operator":
      return "";
  }
}
