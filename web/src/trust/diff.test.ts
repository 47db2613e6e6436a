import { expect, test } from "vitest";
import { diff, type Part } from "./diff";

const side = (parts: Part[], left: "removed" | "added") =>
  parts.filter((part) => part.kind === "same" || part.kind === left).map((part) => part.text).join("").replace(/\s+/g, "");
const withoutSpace = (sql: string) => sql.replace(/\s+/g, "");

test("both queries can be reconstructed from the diff", () => {
  const pairs = [
    ["SELECT AVG(prise) FROM p", "SELECT AVG(price) FROM p"],
    ["SELECT a FROM t", "SELECT a FROM t"],
    ["", "SELECT 1"],
    ["SELECT 1", ""],
    ["SELECT name FROM c WHERE YEAR(d) = 2024;", "SELECT name FROM c JOIN o ON o.c = c.c WHERE CAST(strftime('%Y', d) AS INTEGER) = 2024"],
    ["a b c d e f", "f e d c b a"],
  ] as const;
  for (const [before, after] of pairs) {
    const parts = diff(before, after);
    expect(side(parts, "removed")).toBe(withoutSpace(before));
    expect(side(parts, "added")).toBe(withoutSpace(after));
  }
});

test("shows a replaced identifier as one change", () => {
  expect(diff("SELECT AVG(prise) FROM p", "SELECT  AVG(price)\nFROM p")).toEqual([
    { kind: "same", text: "SELECT AVG(" },
    { kind: "removed", text: "prise" },
    { kind: "added", text: "price" },
    { kind: "same", text: ")\nFROM p" },
  ]);
});

test("excludes surrounding whitespace from changes", () => {
  for (const part of diff("SELECT a FROM t", "SELECT a, b FROM t WHERE x")) {
    if (part.kind !== "same") expect(part.text).toBe(part.text.trim());
  }
});
