import { useEffect, useRef, useState } from "preact/hooks";
import type { View } from "vega";
import type { Chart, Rows } from "../../api";
import { download } from "../../clipboard";
import { strings } from "../../strings";
import { isDark, theme } from "../../theme";
import { formatNumber, isNumericColumn, cellText } from "../text";
import { altText, vegaChartKinds, hasRequiredColumns, vegaLiteSpec } from "./spec";

const labels = strings.result.chart;

/** Chart of the rows, with controls to change it. */
export function ChartPanel({ rows, chart: initialChart }: { rows: Rows; chart: Chart }) {
  const [chart, setChart] = useState(initialChart);
  useEffect(() => setChart(initialChart), [initialChart]);
  if (chart.kind === "figure") return <Figure rows={rows} chart={chart} />;
  return (
    <div class="chart stack">
      <ChartControls rows={rows} chart={chart} change={setChart} />
      {hasRequiredColumns(chart) ? <VegaChart rows={rows} chart={chart} /> : <p class="quiet">{labels.missingColumns}</p>}
    </div>
  );
}

function Figure({ rows, chart }: { rows: Rows; chart: Chart }) {
  const cell = rows.rows[0]?.[chart.y[0] ?? 0];
  return (
    <p class="figure">
      <span class="figure-value">{cell === null ? strings.result.null : formatNumber(cell)}</span>
      <span class="quiet">{rows.columns[chart.y[0] ?? 0]}</span>
    </p>
  );
}

function ChartControls({ rows, chart, change }: { rows: Rows; chart: Chart; change: (chart: Chart) => void }) {
  const columns = rows.columns.map((name, column) => ({ name, column }));
  const numericColumns = columns.filter(({ column }) => isNumericColumn(rows, column, 500));
  const names = columns.filter(({ column }) => !chart.y.includes(column));
  const option = ({ name, column }: { name: string; column: number }) => (
    <option key={column} value={column}>
      {name}
    </option>
  );
  const column = (value: string) => (value === "" ? null : Number(value));
  return (
    <div class="row chart-choices">
      <label>
        {labels.kind}
        <select value={chart.kind} onChange={(event) => change(updateChart(chart, { kind: event.currentTarget.value as Chart["kind"] }))}>
          {vegaChartKinds.map((kind) => (
            <option key={kind} value={kind}>
              {labels.kinds[kind]}
            </option>
          ))}
        </select>
      </label>
      {chart.kind !== "histogram" && (
        <label>
          {labels.xAxis}
          <select value={chart.x ?? ""} onChange={(event) => change(updateChart(chart, { x: column(event.currentTarget.value) }))}>
            {(chart.x === null || chart.x === undefined) && <option value="" />}
            {columns.map(option)}
          </select>
        </label>
      )}
      <label>
        {labels.yAxis}
        <select
          value={chart.y.length === 1 ? chart.y[0] : "several"}
          onChange={(event) => {
            if (event.currentTarget.value !== "several") change(updateChart(chart, { y: [Number(event.currentTarget.value)] }));
          }}
        >
          {chart.y.length !== 1 && <option value="several">{chart.y.map((one) => rows.columns[one]).join(", ")}</option>}
          {numericColumns.map(option)}
        </select>
      </label>
      {chart.kind !== "histogram" && chart.y.length === 1 && (
        <label>
          {labels.series}
          <select value={chart.series ?? ""} onChange={(event) => change(updateChart(chart, { series: column(event.currentTarget.value) }))}>
            <option value="">{labels.none}</option>
            {names.filter((one) => one.column !== chart.x).map(option)}
          </select>
        </label>
      )}
    </div>
  );
}

/** Applies a change and drops fields that are invalid with it. */
function updateChart(chart: Chart, change: Partial<Chart>): Chart {
  const next = { ...chart, ...change };
  if (next.kind === "histogram") return { ...next, y: next.y.slice(0, 1), series: null };
  return next.series === next.x || next.y.length > 1 ? { ...next, series: null } : next;
}

function VegaChart({ rows, chart }: { rows: Rows; chart: Chart }) {
  const container = useRef<HTMLDivElement>(null);
  const view = useRef<View | null>(null);
  const [state, setState] = useState<"drawing" | "drawn" | "failed">("drawing");
  const [width, setWidth] = useState(0);
  const [systemDark, setSystemDark] = useState(isDark());
  const dark = theme.value === "auto" ? systemDark : theme.value === "dark";

  useEffect(() => {
    const element = container.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setWidth(Math.round(element.clientWidth)));
    observer.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setSystemDark(scheme.matches);
    changed();
    scheme.addEventListener("change", changed);
    return () => {
      observer.disconnect();
      scheme.removeEventListener("change", changed);
    };
  }, []);
  useEffect(() => {
    if (width < 50) return;
    let active = true;
    // Load Vega lazily: it is large.
    import("./draw")
      .then(async ({ renderChart }) => {
        if (!active || !container.current) return;
        const made = await renderChart(vegaLiteSpec(rows, chart, { dark, width }), container.current);
        if (!active) return made.finalize();
        view.current = made;
        setState("drawn");
      })
      .catch(() => active && setState("failed"));
    return () => {
      active = false;
      view.current?.finalize();
      view.current = null;
    };
  }, [rows, chart, width, dark]);

  const save = async (format: "png" | "svg") => {
    const { exportImage } = await import("./draw");
    if (view.current) download(await exportImage(view.current, format), `chart.${format}`);
  };
  return (
    <figure>
      <div ref={container} class="chart-container" role="img" aria-label={altText(rows, chart)} />
      {state === "failed" && <p class="notice warn">{labels.failed}</p>}
      {state === "drawing" && <p class="quiet">{labels.drawing}</p>}
      {state === "drawn" && (
        <figcaption class="row">
          <button type="button" class="plain small" onClick={() => void save("png")}>
            {labels.png}
          </button>
          <button type="button" class="plain small" onClick={() => void save("svg")}>
            {labels.svg}
          </button>
          {rows.rows.length * chart.y.length > 5000 && <span class="quiet small">{labels.tooManyMarks}</span>}
        </figcaption>
      )}
    </figure>
  );
}

/** Default chart for rows with numeric columns, if the server suggests none. */
export function defaultChart(rows: Rows): Chart | null {
  if (rows.rows.length < 2) return null;
  const figures = rows.columns.map((_, column) => column).filter((column) => isNumericColumn(rows, column, 500));
  const y = figures[figures.length - 1];
  if (y === undefined) return null;
  const x = rows.columns.findIndex((_, column) => column !== y && cellText(rows.rows[0]?.[column]) !== "");
  return x < 0 ? { kind: "histogram", y: [y] } : { kind: "bar", x, y: [y] };
}
