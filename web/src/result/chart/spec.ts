import type { Chart, ChartKind, Rows } from "../../api";
import { strings } from "../../strings";
import { numeric, textOf } from "../text";

/** Kinds that Vega draws; a single figure is written by the page itself. */
export type Drawn = Exclude<ChartKind, "figure">;
export const drawn: readonly Drawn[] = ["bar", "line", "scatter", "histogram"];

/** Okabe and Ito's colours, which can be told apart without seeing red or green; the yellow is left out, being too pale on white. */
export const palette = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f", "#000000"];
const paletteDark = ["#56b4e9", "#e69f00", "#2fc79a", "#f0803c", "#e3a3c6", "#8fd0f5", "#b0b0b0", "#ffffff"];

/** About how wide a letter of an axis is. */
const letter = 7;

/** More marks than this are slow to draw and cannot be told apart. */
const mostMarks = 5000;

export interface Look {
  dark: boolean;
  width: number;
}

/** One mark: its place, its figure and its series. Names of columns never become names of fields, so none of them can mean anything. */
interface Mark {
  x?: string | number | null;
  y: number | null;
  s?: string;
}

/** Whether the columns suffice for what is to be drawn. */
export function fits(chart: Chart): boolean {
  if (chart.kind === "figure") return chart.y.length === 1;
  if (chart.y.length === 0) return false;
  return chart.kind === "histogram" || (chart.x !== null && chart.x !== undefined);
}

/** What Vega-Lite is told to draw. */
export function spec(rows: Rows, chart: Chart, look: Look): Record<string, unknown> {
  const kind = chart.kind === "figure" ? "bar" : chart.kind;
  const name = (column: number | null | undefined) => rows.columns[column ?? -1] ?? "";
  const several = chart.y.length > 1;
  const parted = several || (chart.series !== null && chart.series !== undefined);
  const figures = several ? strings.result.chart.value : name(chart.y[0]);
  const whole = rows.rows.every((row) => chart.y.every((column) => row[column] === null || Number.isInteger(Number(row[column]))));
  const axis = { title: figures, ...(whole && { axis: { tickMinStep: 1 } }) };
  const y = { field: "y", type: "quantitative", ...axis };
  const x = xOf(rows, chart, kind, name(chart.x));
  const colour = parted
    ? { color: { field: "s", type: "nominal", title: several ? null : name(chart.series), sort: null } }
    : { color: { value: (look.dark ? paletteDark : palette)[0] } };
  return {
    $schema: "https://vega.github.io/schema/vega-lite/v6.json",
    description: altText(rows, chart),
    width: look.width,
    height: kind === "bar" && !upright(rows, chart, look.width) ? lying(rows, chart) : 280,
    autosize: { type: "fit-x", contains: "padding" },
    background: "transparent",
    data: { values: marks(rows, chart) },
    mark: markOf(kind),
    encoding: { ...encoding(kind, x, y, upright(rows, chart, look.width), parted), ...colour },
    config: config(look.dark),
  };
}

function markOf(kind: Drawn): Record<string, unknown> {
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

function encoding(kind: Drawn, x: object, y: { title: string }, standing: boolean, parted: boolean): Record<string, unknown> {
  if (kind === "histogram") {
    return { x: { field: "y", bin: { maxbins: 30 }, title: y.title }, y: { aggregate: "count", title: strings.result.chart.count, axis: { tickMinStep: 1 } } };
  }
  if (kind !== "bar") return { x, y };
  const beside = parted ? { [standing ? "xOffset" : "yOffset"]: { field: "s", sort: null } } : {};
  const level = { ...x, axis: { labelAngle: 0, labelLimit: 180 } };
  return standing ? { x: level, y, ...beside } : { y: x, x: y, ...beside };
}

function xOf(rows: Rows, chart: Chart, kind: Drawn, title: string): Record<string, unknown> {
  if (kind === "scatter") return { field: "x", type: quantity(rows, chart.x) ? "quantitative" : "nominal", title };
  // The rows' own order is the query's: bars keep it, and so do lines over what is no moment.
  if (kind === "line" && moments(rows, chart.x)) return { field: "x", type: "temporal", title };
  if (kind === "line" && quantity(rows, chart.x)) return { field: "x", type: "quantitative", title, scale: { zero: false }, axis: { format: "d" } };
  return { field: "x", type: "nominal", sort: null, title, axis: { labelLimit: 180 } };
}

/** Bars stand where there is room for their names, and lie where there is not. */
function upright(rows: Rows, chart: Chart, width: number): boolean {
  const names = new Set(rows.rows.slice(0, mostMarks).map((row) => textOf(row[chart.x ?? -1])));
  const longest = Math.max(0, ...[...names].map((name) => name.length));
  const room = (width - 60) / letter;
  return names.size * (Math.max(3, longest) + 1) <= room && names.size <= 12;
}

/** Room for each name, and in it for each of its bars. */
function lying(rows: Rows, chart: Chart): number {
  const values = (column: number | null | undefined) => new Set(rows.rows.slice(0, mostMarks).map((row) => textOf(row[column ?? -1]))).size;
  const beside = chart.y.length > 1 ? chart.y.length : chart.series === null || chart.series === undefined ? 1 : values(chart.series);
  return values(chart.x) * Math.max(22, beside * 11 + 4);
}

function quantity(rows: Rows, column: number | null | undefined): boolean {
  return column !== null && column !== undefined && numeric(rows, column);
}

/** Days, months and moments, as databases write them. A bare year is a number. */
function moments(rows: Rows, column: number | null | undefined): boolean {
  if (column === null || column === undefined) return false;
  return rows.rows.every((row) => row[column] === null || /^\d{4}-\d{2}(-\d{2}([ T]\d{2}:\d{2}.*)?)?$/.test(textOf(row[column])));
}

function marks(rows: Rows, chart: Chart): Mark[] {
  const found: Mark[] = [];
  const time = chart.kind === "line" && moments(rows, chart.x);
  const size = quantity(rows, chart.x) && chart.kind !== "bar";
  for (const row of rows.rows) {
    for (const column of chart.y) {
      if (found.length >= mostMarks) return found;
      const cell = row[column];
      const mark: Mark = { y: cell === null || cell === undefined || cell === "" ? null : Number(cell) };
      if (chart.kind !== "histogram" && chart.x !== null && chart.x !== undefined) mark.x = placeOf(row[chart.x], time, size);
      if (chart.y.length > 1) mark.s = rows.columns[column] ?? "";
      else if (chart.series !== null && chart.series !== undefined) mark.s = textOf(row[chart.series]);
      found.push(mark);
    }
  }
  return found;
}

function placeOf(cell: Rows["rows"][number][number] | undefined, time: boolean, size: boolean): string | number | null {
  if (cell === null || cell === undefined) return null;
  if (size) return Number(cell);
  const text = textOf(cell);
  // Without a time of day a browser takes a date for one in Greenwich, and may draw the day before.
  if (time) return Date.parse(text.length === 7 ? `${text}-01T00:00` : text.length === 10 ? `${text}T00:00` : text.replace(" ", "T"));
  return text;
}

/** What is drawn, for those who do not see it. */
export function altText(rows: Rows, chart: Chart): string {
  const words = strings.result.chart;
  const name = (column: number | null | undefined) => rows.columns[column ?? -1] ?? "";
  const figures = chart.y.map(name).join(", ");
  if (chart.kind === "histogram" || chart.kind === "figure") return words.altOf(words.kinds[chart.kind], figures, rows.rows.length);
  return words.altBy(words.kinds[chart.kind], figures, name(chart.x), rows.rows.length);
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
