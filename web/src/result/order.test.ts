import { expect, test } from "vitest";
import type { Cell, Rows } from "../api";
import { arrange, Overtaken } from "./order";
import { csv, figure, numeric, tsv } from "./text";

const table = (columns: string[], rows: Cell[][]): Rows => ({ columns, rows, truncated: false });
const never = new AbortController().signal;

test("numbers are sorted as numbers, NULL last, equal ones as they came", async () => {
  const rows = table(["n", "t"], [[10, "b"], [9, "a"], [null, "c"], ["2.50", "b"], [9, "z"], [-1, ""]]);
  expect([...(await arrange(rows, "", { column: 0, down: false }, never))]).toEqual([5, 3, 1, 4, 0, 2]);
  expect([...(await arrange(rows, "", { column: 0, down: true }, never))]).toEqual([0, 1, 4, 3, 5, 2]);
  expect([...(await arrange(rows, "", { column: 1, down: false }, never))]).toEqual([5, 1, 0, 3, 2, 4]);
});

test("every word of the filter must be somewhere in the row", async () => {
  const rows = table(["a", "b"], [["New York", 10], ["york", null], ["London", 10]]);
  expect([...(await arrange(rows, "YORK 1", null, never))]).toEqual([0]);
  expect([...(await arrange(rows, "  ", null, never))]).toEqual([0, 1, 2]);
});

test("100,000 rows are sorted in slices that leave the page free", async () => {
  const many: Cell[][] = Array.from({ length: 100_000 }, (_, i) => [`item ${(i * 7919) % 100_003}`, i % 10]);
  const rows = table(["t", "n"], many);
  let pauses = 0;
  const watch = setInterval(() => {
    pauses += 1;
  });
  const places = await arrange(rows, "item", { column: 0, down: false }, never);
  clearInterval(watch);
  const texts = [...places].map((at) => String(many[at]?.[0]));
  expect(texts).toEqual([...texts].sort(new Intl.Collator("en").compare));
  expect(pauses).toBeGreaterThan(0);
});

test("who is overtaken stops", async () => {
  const stop = new AbortController();
  stop.abort();
  await expect(arrange(table(["a"], [[1]]), "", null, stop.signal)).rejects.toThrow(Overtaken);
});

test("copied and exported text keeps what cells hold", () => {
  const rows = table(["a", 'b"c'], [[null, ""], ["x,\ty\nz", 1.5], ["=1+1", true]]);
  expect(csv(rows, [0, 1, 2], [0, 1])).toBe('a,"b""c"\r\n,""\r\n"x,\ty\nz",1.5\r\n\'=1+1,true\r\n');
  expect(tsv(rows, [2, 1], [1, 0])).toBe('"b""c"\ta\ntrue\t\'=1+1\n1.5\t"x,\ty\nz"');
});

test("codes are not numbers", () => {
  expect(numeric(table(["zip"], [["01234"], ["99999"]]), 0)).toBe(false);
  expect(numeric(table(["d"], [["12345678901234567890.5"], [null]]), 0)).toBe(true);
  expect(figure(1234567.5)).toBe("1,234,567.5");
  expect(figure(873.0899999999999)).toBe("873.09");
  expect(figure(2024)).toBe("2024");
});
