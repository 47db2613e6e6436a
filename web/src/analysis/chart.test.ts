import { expect, test } from "vitest";
import { chartFor } from "./chart";

test.each([
  [[[36.45]], ["result"], "figure"],
  [[["toys", 1], ["books", null]], ["category", "count"], "bar"],
  [[["2024-01", 1], ["2024-02", 2]], ["month", "count"], "line"],
  [[["toys", "a"], ["books", "b"]], ["category", "name"], undefined],
  [[["text"]], ["result"], undefined],
  [[], ["category", "count"], undefined],
])("chooses the chart for %j", (rows, columns, kind) => {
  expect(chartFor({ columns, rows, truncated: false })?.kind).toBe(kind);
});
