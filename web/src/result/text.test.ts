import { expect, test } from "vitest";
import { csv, tsv } from "./text";

const rows = {
  columns: ["=name", "n"],
  rows: [["=HYPERLINK(\"x\")", -3], ["+1 phone", 1.5], ["-4.5", null], ["@all", "+49"], ["plain, text", "a\tb"]],
  truncated: false,
};

test("escapes formulas but not numbers (CSV injection)", () => {
  expect(csv(rows, [0, 1, 2, 3, 4], [0, 1]).split("\r\n")).toEqual([
    "'=name,n",
    "\"'=HYPERLINK(\"\"x\"\")\",-3",
    "'+1 phone,1.5",
    "-4.5,",
    "'@all,+49",
    "\"plain, text\",a\tb",
    "",
  ]);
  expect(tsv(rows, [0], [0])).toBe("'=name\n\"'=HYPERLINK(\"\"x\"\")\"");
});
