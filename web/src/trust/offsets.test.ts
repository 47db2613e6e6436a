import { expect, test } from "vitest";
import { splitByMarks, findingRange, locateFinding } from "./offsets";

const finding = (subject: string, start: number, end: number) => ({ subject, span: { start, end } });

test("converts byte spans to UTF-16 ranges", () => {
  expect(findingRange(finding("x", 10, 11), "SELECT 'é', x")).toEqual({ start: 9, end: 10 });
});

test("locates a finding of a draft in the extracted query", () => {
  const sql = "SELECT prise FROM products";
  const draft = "Voilà:\n```sql\n" + sql + "\n```";
  const bytes = new TextEncoder().encode("Voilà:\n```sql\n").length;
  expect(locateFinding(finding("prise", 7, 12), sql, draft)).toEqual({ start: 7, end: 12 });
  expect(locateFinding(finding("prise", bytes + 7, bytes + 12), sql, draft)).toEqual({ start: 7, end: 12 });
  expect(locateFinding(finding("prise", 999, 1004), sql)).toEqual({ start: 7, end: 12 });
  expect(locateFinding(finding("```sql", 8, 14), sql, draft)).toBeNull();
  expect(locateFinding(finding("S", 99, 100), "S S")).toBeNull();
});

test("splits a text by marks, the shortest on top", () => {
  const marks = [
    { range: { start: 2, end: 8 }, mark: "long" },
    { range: { start: 4, end: 5 }, mark: "short" },
    { range: { start: 10, end: 10 }, mark: "end" },
  ];
  expect(splitByMarks(10, marks)).toEqual([
    { start: 0, end: 2, mark: null },
    { start: 2, end: 4, mark: "long" },
    { start: 4, end: 5, mark: "short" },
    { start: 5, end: 8, mark: "long" },
    { start: 8, end: 9, mark: null },
    { start: 9, end: 10, mark: "end" },
  ]);
  expect(splitByMarks(0, [])).toEqual([]);
});
