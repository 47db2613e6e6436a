import { expect, test } from "vitest";
import type { Cell } from "../api";
import { summarizeRows } from "./summary";

test("summarizes rows in one line", () => {
  const check = (columns: string[], rows: Cell[][], expected: string, truncated = false) =>
    expect(summarizeRows({ columns, rows, truncated })).toBe(expected);
  check(["COUNT(*)"], [[12345]], "COUNT(*): 12,345");
  check(["mean_price"], [[null]], "mean price: NULL");
  check(["name", "n"], [["Ada", 3]], "name: Ada · n: 3");
  check(["a"], [], "No rows.");
  check(["name", "city"], [["A", "x"], ["B", "y"]], "2 rows of name and city");
  check(["category", "products"], [["Toys", 8], ["Books", 9]], "2 rows of category and products. Largest products: Books with 9");
  check(["category", "n"], [["Toys", 9], ["Books", 9]], "2 rows of category and n");
  check(["a", "b", "c", "d", "e"], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]], "2 rows of a, b, c and 2 more columns");
  check(["n"], [[1], [2]], "the first 2 rows of n", true);
});
