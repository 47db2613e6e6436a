import { expect, test } from "vitest";
import { cutBy, exactly, placeIn } from "./place";

const finding = (subject: string, start: number, end: number) => ({ subject, span: { start, end } });

test("bytes become places of the text", () => {
  expect(exactly(finding("x", 10, 11), "SELECT 'é', x")).toEqual({ start: 9, end: 10 });
});

test("a finding about a draft is found in the query that was cut out of it", () => {
  const sql = "SELECT prise FROM products";
  const draft = "Voilà:\n```sql\n" + sql + "\n```";
  const bytes = new TextEncoder().encode("Voilà:\n```sql\n").length;
  expect(placeIn(finding("prise", 7, 12), sql, draft)).toEqual({ start: 7, end: 12 });
  expect(placeIn(finding("prise", bytes + 7, bytes + 12), sql, draft)).toEqual({ start: 7, end: 12 });
  expect(placeIn(finding("prise", 999, 1004), sql)).toEqual({ start: 7, end: 12 });
  expect(placeIn(finding("```sql", 8, 14), sql, draft)).toBeNull();
  expect(placeIn(finding("S", 99, 100), "S S")).toBeNull();
});

test("a text is cut by marks, the shorter above the longer", () => {
  const marks = [
    { piece: { start: 2, end: 8 }, mark: "long" },
    { piece: { start: 4, end: 5 }, mark: "short" },
    { piece: { start: 10, end: 10 }, mark: "end" },
  ];
  expect(cutBy(10, marks)).toEqual([
    { start: 0, end: 2, mark: null },
    { start: 2, end: 4, mark: "long" },
    { start: 4, end: 5, mark: "short" },
    { start: 5, end: 8, mark: "long" },
    { start: 8, end: 9, mark: null },
    { start: 9, end: 10, mark: "end" },
  ]);
  expect(cutBy(0, [])).toEqual([]);
});
