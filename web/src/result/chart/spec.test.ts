import { compile } from "vega-lite";
import { expect, test } from "vitest";
import type { Cell, Chart, Rows } from "../../api";
import { altText, hasRequiredColumns, vegaLiteSpec } from "./spec";

const table = (columns: string[], rows: Cell[][]): Rows => ({ columns, rows, truncated: false });
const style = { dark: false, width: 600 };
type Spec = { mark: { type: string }; encoding: Record<string, Record<string, unknown>>; data: { values: Record<string, unknown>[] } };
const specOf = (rows: Rows, chart: Chart) => vegaLiteSpec(rows, chart, style) as unknown as Spec;

const cities = table(["city", "n", "m"], [["Oslo", 3, "1.5"], ["Rome", null, "2.5"]]);

test("uses horizontal bars for long labels", () => {
  const short = specOf(cities, { kind: "bar", x: 0, y: [1] });
  expect(short.encoding["x"]).toMatchObject({ field: "x", type: "nominal", sort: null, title: "city" });
  expect(short.data.values).toEqual([{ x: "Oslo", y: 3 }, { x: "Rome", y: null }]);
  const long = specOf(table(["c", "n"], Array.from({ length: 12 }, (_, i) => [`a rather long name ${i}`, i])), { kind: "bar", x: 0, y: [1] });
  expect(long.encoding["y"]).toMatchObject({ type: "nominal" });
});

test("plots several measures as grouped series", () => {
  const { encoding, data } = specOf(cities, { kind: "bar", x: 0, y: [1, 2] });
  expect(encoding["color"]).toMatchObject({ field: "s" });
  expect(encoding["xOffset"]).toBeTruthy();
  expect(data.values[1]).toEqual({ x: "Oslo", y: 1.5, s: "m" });
});

test("treats months as temporal and years as numbers", () => {
  const months = specOf(table(["month", "n"], [["2024-01", 1], ["2024-02", 2]]), { kind: "line", x: 0, y: [1] });
  expect(months.encoding["x"]).toMatchObject({ type: "temporal" });
  expect(months.data.values[0]?.["x"]).toBe(new Date(2024, 0, 1).getTime());
  const years = specOf(table(["year", "n"], [[2023, 1], [2024, 2]]), { kind: "line", x: 0, y: [1] });
  expect(years.encoding["x"]).toMatchObject({ type: "quantitative" });
});

test("never uses column names as Vega fields", () => {
  const hostile = table(["a['b']); alert(1)", "datum.x"], [["<img onerror=alert(1)>", 1], ["javascript:alert(1)", 2]]);
  const found = specOf(hostile, { kind: "bar", x: 0, y: [1] });
  const fields = Object.values(found.encoding).map((one) => one["field"]).filter(Boolean);
  expect(fields.every((field) => field === "x" || field === "y" || field === "s")).toBe(true);
});

test("compiles every chart kind without warnings", () => {
  const points = table(["a", "b", "c"], Array.from({ length: 9 }, (_, i) => [i, i * i, `s${i % 2}`]));
  const charts: Chart[] = [
    { kind: "bar", x: 2, y: [0, 1] },
    { kind: "line", x: 0, y: [1], series: 2 },
    { kind: "scatter", x: 0, y: [1] },
    { kind: "histogram", y: [1] },
  ];
  for (const chart of charts) {
    const warnings: unknown[] = [];
    const quiet = { level: () => quiet, error: (...a: unknown[]) => (warnings.push(a), quiet), warn: (...a: unknown[]) => (warnings.push(a), quiet), info: () => quiet, debug: () => quiet };
    expect(compile(vegaLiteSpec(points, chart, style) as never, { logger: quiet as never }).spec.marks?.length).toBeGreaterThan(0);
    expect(warnings).toEqual([]);
  }
});

test("describes a chart and detects missing columns", () => {
  expect(altText(cities, { kind: "bar", x: 0, y: [1] })).toBe("Bar chart of n by city, 2 rows. The table shows the same values.");
  expect(hasRequiredColumns({ kind: "bar", y: [1] })).toBe(false);
  expect(hasRequiredColumns({ kind: "histogram", y: [1] })).toBe(true);
  expect(hasRequiredColumns({ kind: "line", x: 0, y: [] })).toBe(false);
});
