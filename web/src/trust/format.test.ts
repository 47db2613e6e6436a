import { expect, test } from "vitest";
import { format } from "./format";
import { tokenize } from "./tokens";

const queries = [
  "SELECT 1",
  "select a,b from t where x=1 and y between 2 and 3 or z is not distinct from 4",
  "SELECT c.name, COUNT(*) AS ordered FROM customers c LEFT OUTER JOIN orders o ON o.customer_id = c.customer_id AND o.status <> 'new' WHERE o.ordered_on >= '2024-01-01' GROUP BY c.name HAVING COUNT(*) > 2 ORDER BY 2 DESC LIMIT 10",
  "WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a UNION ALL SELECT 2) SELECT * FROM a JOIN b USING (x)",
  "SELECT it -- a comment with 'quotes\nFROM \"Odd  name\" /* two\n  lines */ WHERE s = 'it''s  two  spaces'",
  "SELECT CASE WHEN price > 1000 THEN 'a very expensive thing' WHEN price > 10 THEN 'not so expensive' ELSE 'cheap' END FROM p",
  "SELECT * FROM t WHERE id IN (SELECT id FROM u WHERE (a OR b) AND EXISTS (SELECT 1))",
  "SELECT $$ a  FROM b $$, E'it\\'s', x::text, j->>'a', extract(year from d) FROM ünï_cödé",
  "SELECT 'never closed",
  "SELECT (((",
  ")))",
  "",
];

test("changes only whitespace and is idempotent", () => {
  for (const sql of queries) {
    const { text } = format(sql);
    const codeTokens = (of: string) => tokenize(of).filter((token) => token.kind !== "space").map((token) => token.text);
    expect(codeTokens(text)).toEqual(codeTokens(sql));
    expect(format(text).text).toBe(text);
  }
});

test("maps every token offset to the formatted text", () => {
  for (const sql of queries) {
    const { text, mapOffset } = format(sql);
    for (const token of tokenize(sql)) {
      if (token.kind === "space") continue;
      const start = mapOffset(token.offset);
      expect(text.slice(start, start + token.text.length)).toBe(token.text);
    }
  }
});

test("starts a line at each clause, join and condition", () => {
  expect(format(queries[2] ?? "").text).toMatchInlineSnapshot(`
    "SELECT c.name, COUNT(*) AS ordered
    FROM customers c
    LEFT OUTER JOIN orders o ON o.customer_id = c.customer_id
      AND o.status <> 'new'
    WHERE o.ordered_on >= '2024-01-01'
    GROUP BY c.name
    HAVING COUNT(*) > 2
    ORDER BY 2 DESC
    LIMIT 10"
  `);
  expect(format(queries[3] ?? "").text).toMatchInlineSnapshot(`
    "WITH a AS (
      SELECT 1 AS x
    ),
    b AS (
      SELECT x
      FROM a
      UNION ALL
      SELECT 2
    )
    SELECT *
    FROM a
    JOIN b USING (x)"
  `);
  expect(format(queries[5] ?? "").text).toMatchInlineSnapshot(`
    "SELECT CASE
        WHEN price > 1000 THEN 'a very expensive thing'
        WHEN price > 10 THEN 'not so expensive'
        ELSE 'cheap'
      END
    FROM p"
  `);
  expect(format(queries[6] ?? "").text).toMatchInlineSnapshot(`
    "SELECT *
    FROM t
    WHERE id IN (
      SELECT id
      FROM u
      WHERE (a OR b)
        AND EXISTS (
          SELECT 1
        )
    )"
  `);
});

test("treats backslash as an escape by dialect", () => {
  const sql = "SELECT 'it\\'  AND  x', 1";
  expect(format(sql, "mysql").text).toBe(sql);
  expect(format("SELECT 'c:\\'  AS x", "postgres").text).toBe("SELECT 'c:\\' AS x");
});
