import { expect, test } from "vitest";
import type { Cell, Rows } from "../api";
import { sortAndFilter, Superseded } from "./sort-filter";
import { csv, formatNumber, isNumericColumn, tsv } from "./text";

const table = (columns: string[], rows: Cell[][]): Rows => ({ columns, rows, truncated: false });
const neverAborted = new AbortController().signal;

test("sorts numerically and stably, NULL last", async () => {
  const rows = table(["n", "t"], [[10, "b"], [9, "a"], [null, "c"], ["2.50", "b"], [9, "z"], [-1, ""]]);
  expect([...(await sortAndFilter(rows, "", { column: 0, descending: false }, neverAborted))]).toEqual([5, 3, 1, 4, 0, 2]);
  expect([...(await sortAndFilter(rows, "", { column: 0, descending: true }, neverAborted))]).toEqual([0, 1, 4, 3, 5, 2]);
  expect([...(await sortAndFilter(rows, "", { column: 1, descending: false }, neverAborted))]).toEqual([5, 1, 0, 3, 2, 4]);
});

test("filters rows that contain every term", async () => {
  const rows = table(["a", "b"], [["New York", 10], ["york", null], ["London", 10]]);
  expect([...(await sortAndFilter(rows, "YORK 1", null, neverAborted))]).toEqual([0]);
  expect([...(await sortAndFilter(rows, "  ", null, neverAborted))]).toEqual([0, 1, 2]);
});

test("yields to the event loop while sorting 100,000 rows", async () => {
  const many: Cell[][] = Array.from({ length: 100_000 }, (_, i) => [`item ${(i * 7919) % 100_003}`, i % 10]);
  const rows = table(["t", "n"], many);
  let pauses = 0;
  const watch = setInterval(() => {
    pauses += 1;
  });
  const indices = await sortAndFilter(rows, "item", { column: 0, descending: false }, neverAborted);
  clearInterval(watch);
  const texts = [...indices].map((at) => String(many[at]?.[0]));
  expect(texts).toEqual([...texts].sort(new Intl.Collator("en").compare));
  expect(pauses).toBeGreaterThan(0);
});

test("stops when superseded", async () => {
  const stop = new AbortController();
  stop.abort();
  await expect(sortAndFilter(table(["a"], [[1]]), "", null, stop.signal)).rejects.toThrow(Superseded);
});

test("CSV and TSV preserve cell contents", () => {
  const rows = table(["a", 'b"c'], [[null, ""], ["x,\ty\nz", 1.5], ["=1+1", true]]);
  expect(csv(rows, [0, 1, 2], [0, 1])).toBe('a,"b""c"\r\n,""\r\n"x,\ty\nz",1.5\r\n\'=1+1,true\r\n');
  expect(tsv(rows, [2, 1], [1, 0])).toBe('"b""c"\ta\ntrue\t\'=1+1\n1.5\t"x,\ty\nz"');
});

test("does not treat codes with leading zeros as numbers", () => {
  expect(isNumericColumn(table(["zip"], [["01234"], ["99999"]]), 0)).toBe(false);
  expect(isNumericColumn(table(["d"], [["12345678901234567890.5"], [null]]), 0)).toBe(true);
  expect(formatNumber(1234567.5)).toBe("1,234,567.5");
  expect(formatNumber(873.0899999999999)).toBe("873.09");
  expect(formatNumber(2024)).toBe("2024");
});
