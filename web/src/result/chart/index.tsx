import { useEffect, useRef, useState } from "preact/hooks";
import type { View } from "vega";
import type { Chart, Rows } from "../../api";
import { download } from "../../clipboard";
import { strings } from "../../strings";
import { isDark, theme } from "../../theme";
import { figure, numeric, textOf } from "../text";
import { altText, drawn, fits, spec } from "./spec";

const words = strings.result.chart;

/** The picture that fits the rows; what it shows can be changed. */
export function ChartPanel({ rows, chart: fitting }: { rows: Rows; chart: Chart }) {
  const [chart, setChart] = useState(fitting);
  useEffect(() => setChart(fitting), [fitting]);
  if (chart.kind === "figure") return <Figure rows={rows} chart={chart} />;
  return (
    <div class="chart stack">
      <Choices rows={rows} chart={chart} change={setChart} />
      {fits(chart) ? <Drawing rows={rows} chart={chart} /> : <p class="quiet">{words.lacking}</p>}
    </div>
  );
}

function Figure({ rows, chart }: { rows: Rows; chart: Chart }) {
  const cell = rows.rows[0]?.[chart.y[0] ?? 0];
  return (
    <p class="figure">
      <span class="figure-value">{cell === null ? strings.result.null : figure(cell)}</span>
      <span class="quiet">{rows.columns[chart.y[0] ?? 0]}</span>
    </p>
  );
}

function Choices({ rows, chart, change }: { rows: Rows; chart: Chart; change: (chart: Chart) => void }) {
  const columns = rows.columns.map((name, column) => ({ name, column }));
  const figures = columns.filter(({ column }) => numeric(rows, column, 500));
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
        {words.kind}
        <select value={chart.kind} onChange={(event) => change(asked(chart, { kind: event.currentTarget.value as Chart["kind"] }))}>
          {drawn.map((kind) => (
            <option key={kind} value={kind}>
              {words.kinds[kind]}
            </option>
          ))}
        </select>
      </label>
      {chart.kind !== "histogram" && (
        <label>
          {words.along}
          <select value={chart.x ?? ""} onChange={(event) => change(asked(chart, { x: column(event.currentTarget.value) }))}>
            {(chart.x === null || chart.x === undefined) && <option value="" />}
            {columns.map(option)}
          </select>
        </label>
      )}
      <label>
        {words.figures}
        <select
          value={chart.y.length === 1 ? chart.y[0] : "several"}
          onChange={(event) => {
            if (event.currentTarget.value !== "several") change(asked(chart, { y: [Number(event.currentTarget.value)] }));
          }}
        >
          {chart.y.length !== 1 && <option value="several">{chart.y.map((one) => rows.columns[one]).join(", ")}</option>}
          {figures.map(option)}
        </select>
      </label>
      {chart.kind !== "histogram" && chart.y.length === 1 && (
        <label>
          {words.series}
          <select value={chart.series ?? ""} onChange={(event) => change(asked(chart, { series: column(event.currentTarget.value) }))}>
            <option value="">{words.none}</option>
            {names.filter((one) => one.column !== chart.x).map(option)}
          </select>
        </label>
      )}
    </div>
  );
}

/** The chart with something changed; what no longer makes sense with it is dropped. */
function asked(chart: Chart, change: Partial<Chart>): Chart {
  const next = { ...chart, ...change };
  if (next.kind === "histogram") return { ...next, y: next.y.slice(0, 1), series: null };
  return next.series === next.x || next.y.length > 1 ? { ...next, series: null } : next;
}

function Drawing({ rows, chart }: { rows: Rows; chart: Chart }) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<View | null>(null);
  const [state, setState] = useState<"drawing" | "drawn" | "failed">("drawing");
  const [width, setWidth] = useState(0);
  const [system, setSystem] = useState(isDark());
  const dark = theme.value === "auto" ? system : theme.value === "dark";

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(Math.round(element.clientWidth)));
    watch.observe(element);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setSystem(scheme.matches);
    changed();
    scheme.addEventListener("change", changed);
    return () => {
      watch.disconnect();
      scheme.removeEventListener("change", changed);
    };
  }, []);
  useEffect(() => {
    if (width < 50) return;
    let here = true;
    // Vega is large, so it is fetched when there is something to draw.
    import("./draw")
      .then(async ({ draw }) => {
        if (!here || !place.current) return;
        const made = await draw(spec(rows, chart, { dark, width }), place.current);
        if (!here) return made.finalize();
        view.current = made;
        setState("drawn");
      })
      .catch(() => here && setState("failed"));
    return () => {
      here = false;
      view.current?.finalize();
      view.current = null;
    };
  }, [rows, chart, width, dark]);

  const save = async (format: "png" | "svg") => {
    const { picture } = await import("./draw");
    if (view.current) download(await picture(view.current, format), `chart.${format}`);
  };
  return (
    <figure>
      <div ref={place} class="chart-place" role="img" aria-label={altText(rows, chart)} />
      {state === "failed" && <p class="notice warn">{words.failed}</p>}
      {state === "drawing" && <p class="quiet">{words.drawing}</p>}
      {state === "drawn" && (
        <figcaption class="row">
          <button type="button" class="plain small" onClick={() => void save("png")}>
            {words.png}
          </button>
          <button type="button" class="plain small" onClick={() => void save("svg")}>
            {words.svg}
          </button>
          {rows.rows.length * chart.y.length > 5000 && <span class="quiet small">{words.tooMany}</span>}
        </figcaption>
      )}
    </figure>
  );
}

/** A chart to begin with, where the server proposes none but the rows have figures. */
export function anyChart(rows: Rows): Chart | null {
  if (rows.rows.length < 2) return null;
  const figures = rows.columns.map((_, column) => column).filter((column) => numeric(rows, column, 500));
  const y = figures[figures.length - 1];
  if (y === undefined) return null;
  const x = rows.columns.findIndex((_, column) => column !== y && textOf(rows.rows[0]?.[column]) !== "");
  return x < 0 ? { kind: "histogram", y: [y] } : { kind: "bar", x, y: [y] };
}
