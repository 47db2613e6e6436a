import type { Chart, ChartKind, Rows } from "../../api";
import { strings } from "../../strings";
import { isNumericColumn, cellText } from "../text";

/** Chart kinds drawn by Vega; the page renders a single number itself. */
export type VegaChartKind = Exclude<ChartKind, "figure">;
export const vegaChartKinds: readonly VegaChartKind[] = ["bar", "line", "scatter", "histogram"];

/**
 * Okabe–Ito palette, safe for color-blind readers. Yellow is left out: its contrast on white is too
 * low.
 */
export const palette = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f", "#000000"];
const paletteDark = ["#56b4e9", "#e69f00", "#2fc79a", "#f0803c", "#e3a3c6", "#8fd0f5", "#b0b0b0", "#ffffff"];

/** Approximate width of a character of an axis label, in pixels. */
const characterWidth = 7;

/** Maximum number of marks: more are slow to draw and not readable. */
const maxMarks = 5000;

export interface ChartStyle {
  dark: boolean;
  width: number;
}

/**
 * Data point. Fields have fixed names: a column name could otherwise be interpreted as an
 * expression.
 */
interface Mark {
  x?: string | number | null;
  y: number | null;
  s?: string;
}

/** Returns whether the chart has all columns that its kind requires. */
export function hasRequiredColumns(chart: Chart): boolean {
  if (chart.kind === "figure") return chart.y.length === 1;
  if (chart.y.length === 0) return false;
  return chart.kind === "histogram" || (chart.x !== null && chart.x !== undefined);
}

/** Builds the Vega-Lite specification of a chart. */
export function vegaLiteSpec(rows: Rows, chart: Chart, style: ChartStyle): Record<string, unknown> {
  const kind = chart.kind === "figure" ? "bar" : chart.kind;
  const name = (column: number | null | undefined) => rows.columns[column ?? -1] ?? "";
  const hasSeveralMeasures = chart.y.length > 1;
  const hasSeries = hasSeveralMeasures || (chart.series !== null && chart.series !== undefined);
  const measureTitle = hasSeveralMeasures ? strings.result.chart.value : name(chart.y[0]);
  const isInteger = rows.rows.every((row) => chart.y.every((column) => row[column] === null || Number.isInteger(Number(row[column]))));
  const axis = { title: measureTitle, ...(isInteger && { axis: { tickMinStep: 1 } }) };
  const y = { field: "y", type: "quantitative", ...axis };
  const x = xEncoding(rows, chart, kind, name(chart.x));
  const colour = hasSeries
    ? { color: { field: "s", type: "nominal", title: hasSeveralMeasures ? null : name(chart.series), sort: null } }
    : { color: { value: (style.dark ? paletteDark : palette)[0] } };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    description: altText(rows, chart),
    width: style.width,
    height: kind === "bar" && !hasVerticalBars(rows, chart, style.width) ? horizontalBarsHeight(rows, chart) : 280,
    autosize: { type: "fit-x", contains: "padding" },
    background: "transparent",
    data: { values: chartMarks(rows, chart) },
    mark: vegaMark(kind),
    encoding: { ...encoding(kind, x, y, hasVerticalBars(rows, chart, style.width), hasSeries), ...colour },
    vegaConfig: config(style.dark),
  };
}

function vegaMark(kind: VegaChartKind): Record<string, unknown> {
  const tooltip = true;
  switch (kind) {
    case "bar":
    case "histogram":
      return { type: "bar", tooltip };
    case "line":
      return { type: "line", point: true, tooltip };
    case "scatter":
      return { type: "point", filled: true, opacity: 0.75, tooltip };
  }
}

function encoding(kind: VegaChartKind, x: object, y: { title: string }, isVertical: boolean, hasSeries: boolean): Record<string, unknown> {
  if (kind === "histogram") {
    return { x: { field: "y", bin: { maxbins: 30 }, title: y.title }, y: { aggregate: "count", title: strings.result.chart.count, axis: { tickMinStep: 1 } } };
  }
  if (kind !== "bar") return { x, y };
  const seriesOffset = hasSeries ? { [isVertical ? "xOffset" : "yOffset"]: { field: "s", sort: null } } : {};
  const horizontalLabels = { ...x, axis: { labelAngle: 0, labelLimit: 180 } };
  return isVertical ? { x: horizontalLabels, y, ...seriesOffset } : { y: x, x: y, ...seriesOffset };
}

function xEncoding(rows: Rows, chart: Chart, kind: VegaChartKind, title: string): Record<string, unknown> {
  if (kind === "scatter") return { field: "x", type: isQuantitative(rows, chart.x) ? "quantitative" : "nominal", title };
  // Bars, and lines over a non-temporal axis, keep the row order of the query.
  if (kind === "line" && isTemporal(rows, chart.x)) return { field: "x", type: "temporal", title };
  if (kind === "line" && isQuantitative(rows, chart.x)) return { field: "x", type: "quantitative", title, scale: { zero: false }, axis: { format: "d" } };
  return { field: "x", type: "nominal", sort: null, title, axis: { labelLimit: 180 } };
}

/** Returns whether the labels fit below vertical bars. */
function hasVerticalBars(rows: Rows, chart: Chart, width: number): boolean {
  const names = new Set(rows.rows.slice(0, maxMarks).map((row) => cellText(row[chart.x ?? -1])));
  const maxLength = Math.max(0, ...[...names].map((name) => name.length));
  const room = (width - 60) / characterWidth;
  return names.size * (Math.max(3, maxLength) + 1) <= room && names.size <= 12;
}

/** Height of a horizontal bar chart, in pixels. */
function horizontalBarsHeight(rows: Rows, chart: Chart): number {
  const values = (column: number | null | undefined) => new Set(rows.rows.slice(0, maxMarks).map((row) => cellText(row[column ?? -1]))).size;
  const barsPerName = chart.y.length > 1 ? chart.y.length : chart.series === null || chart.series === undefined ? 1 : values(chart.series);
  return values(chart.x) * Math.max(22, barsPerName * 11 + 4);
}

function isQuantitative(rows: Rows, column: number | null | undefined): boolean {
  return column !== null && column !== undefined && isNumericColumn(rows, column);
}

/** Returns whether all values are dates or timestamps. A bare year counts as a number. */
function isTemporal(rows: Rows, column: number | null | undefined): boolean {
  if (column === null || column === undefined) return false;
  return rows.rows.every((row) => row[column] === null || /^\d{4}-\d{2}(-\d{2}([ T]\d{2}:\d{2}.*)?)?$/.test(cellText(row[column])));
}

function chartMarks(rows: Rows, chart: Chart): Mark[] {
  const found: Mark[] = [];
  const temporal = chart.kind === "line" && isTemporal(rows, chart.x);
  const quantitative = isQuantitative(rows, chart.x) && chart.kind !== "bar";
  for (const row of rows.rows) {
    for (const column of chart.y) {
      if (found.length >= maxMarks) return found;
      const cell = row[column];
      const mark: Mark = { y: cell === null || cell === undefined || cell === "" ? null : Number(cell) };
      if (chart.kind !== "histogram" && chart.x !== null && chart.x !== undefined) mark.x = xValue(row[chart.x], temporal, quantitative);
      if (chart.y.length > 1) mark.s = rows.columns[column] ?? "";
      else if (chart.series !== null && chart.series !== undefined) mark.s = cellText(row[chart.series]);
      found.push(mark);
    }
  }
  return found;
}

function xValue(cell: Rows["rows"][number][number] | undefined, temporal: boolean, quantitative: boolean): string | number | null {
  if (cell === null || cell === undefined) return null;
  if (quantitative) return Number(cell);
  const text = cellText(cell);
  // Append a time: browsers parse a bare date as UTC, which may shift it to the day before.
  if (temporal) return Date.parse(text.length === 7 ? `${text}-01T00:00` : text.length === 10 ? `${text}T00:00` : text.replace(" ", "T"));
  return text;
}

/** Text alternative of a chart. */
export function altText(rows: Rows, chart: Chart): string {
  const labels = strings.result.chart;
  const name = (column: number | null | undefined) => rows.columns[column ?? -1] ?? "";
  const measures = chart.y.map(name).join(", ");
  if (chart.kind === "histogram" || chart.kind === "figure") return labels.altOf(labels.kinds[chart.kind], measures, rows.rows.length);
  return labels.altBy(labels.kinds[chart.kind], measures, name(chart.x), rows.rows.length);
}

function config(dark: boolean): Record<string, unknown> {
  const ink = dark ? "#e8eaea" : "#1d1f21";
  const quiet = dark ? "#a6adb2" : "#5a5f63";
  const line = dark ? "#32383c" : "#e3e3dd";
  return {
    font: "system-ui, sans-serif",
    axis: { labelColor: quiet, titleColor: ink, gridColor: line, domainColor: quiet, tickColor: quiet, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 600 },
    legend: { labelColor: ink, titleColor: ink, orient: "top", labelFontSize: 12 },
    range: { category: dark ? paletteDark : palette },
    view: { stroke: null },
  };
}
