/** The smallest pieces of a query, as far as they matter for showing it. Together they are the whole text, nothing left out. */
export type TokenKind = "space" | "comment" | "text" | "name" | "number" | "word" | "mark";

export interface Token {
  kind: TokenKind;
  text: string;
  /** Where it begins in the text that was cut, in UTF-16 units. */
  at: number;
}

/** Dialects in which a backslash hides the quote behind it. In the others it is a character like any other. */
const backslashes = new Set(["mysql", "mariadb", "bigquery", "spark", "databricks", "hive", "clickhouse", "snowflake"]);

/** Operators of more than one character, which are not to be torn apart. */
const marks = ["<=>", "->>", "#>>", "!~*", "<>", "<=", ">=", "!=", "||", "::", "->", "#>", "!~", "~*", "@>", "<@", "=>", ":=", "&&"];

export function tokens(sql: string, dialect = ""): Token[] {
  const found: Token[] = [];
  let at = 0;
  while (at < sql.length) {
    const [kind, end] = next(sql, at, backslashes.has(dialect));
    found.push({ kind, text: sql.slice(at, end), at });
    at = end;
  }
  return found;
}

function next(sql: string, at: number, backslash: boolean): [TokenKind, number] {
  const rest = (pattern: RegExp): number => {
    pattern.lastIndex = at;
    return pattern.test(sql) ? pattern.lastIndex : -1;
  };
  const space = rest(/\s+/y);
  if (space > 0) return ["space", space];
  if (sql.startsWith("--", at)) return ["comment", until(sql, "\n", at, false)];
  if (sql.startsWith("/*", at)) return ["comment", until(sql, "*/", at + 2, true)];
  const prefix = rest(/(?:[eE]|[nN]|[bBxXrR]|[uU]&)'/y);
  if (prefix > 0) return ["text", quoted(sql, prefix - 1, backslash || /[eE]/.test(sql[at] ?? ""))];
  const dollar = /\$(?:[A-Za-z_]\w*)?\$/y;
  const tag = rest(dollar);
  if (tag > 0) return ["text", until(sql, sql.slice(at, tag), tag, true)];
  const first = sql[at];
  if (first === "'") return ["text", quoted(sql, at, backslash)];
  if (first === '"' || first === "`") return ["name", quoted(sql, at, backslash && first === '"')];
  const bracketed = rest(/\[[A-Za-z_][^\]\n]*\]/y);
  if (bracketed > 0 && !/[\w\])]/.test(sql[at - 1] ?? "")) return ["name", bracketed];
  const number = rest(/(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y);
  if (number > 0) return ["number", number];
  const word = rest(/[\p{L}_@#$][\p{L}\p{N}_$#]*/uy);
  if (word > 0) return ["word", word];
  const mark = marks.find((one) => sql.startsWith(one, at));
  if (mark) return ["mark", at + mark.length];
  return ["mark", at + ((sql.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)];
}

/** Where a quoted piece ends. A doubled quote stands for one; what is never closed runs to the end. */
function quoted(sql: string, at: number, backslash: boolean): number {
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

function until(sql: string, end: string, from: number, whole: boolean): number {
  const found = sql.indexOf(end, from);
  return found < 0 ? sql.length : found + (whole ? end.length : 0);
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

/** How a token is coloured. A word with a bracket behind it is called, not named. */
export function look(token: Token, following: Token | undefined): string {
  switch (token.kind) {
    case "comment":
      return "sql-comment";
    case "text":
      return "sql-text";
    case "number":
      return "sql-number";
    case "word":
      if (isKeyword(token.text)) return "sql-word";
      return following?.text === "(" ? "sql-function" : "";
    case "space":
    case "name":
    case "mark":
      return "";
  }
}
