import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart, Rows, ProblemDetails } from "../api";
import { copyText } from "../clipboard";
import { strings } from "../strings";
import { isAbortError, toProblem, ErrorBox } from "../error-box";
import { CellDialog } from "./cell-dialog";
import { defaultChart, ChartPanel } from "./chart";
import { Export } from "./export";
import { fetchRows, maxRows, type RowSource } from "./fetch-rows";
import { sortAndFilter, Superseded, type SortOrder } from "./sort-filter";
import { selectionBounds, type CellPosition, type Selection } from "./selection";
import { Table } from "./table";
import { formatNumber, cellText, tsv } from "./text";
import { summarizeRows } from "./summary";

export type { RowSource };

interface Props {
  rows: Rows;
  chart?: Chart | null | undefined;
  /**
   * Query to fetch more rows or other formats from. Without it only the given rows can be exported.
   */
  source?: RowSource | undefined;
  /** Summary from the server; by default the rows are summarized here. */
  text?: string | null | undefined;
}

const labels = strings.result;

/** Result as a summary, a chart where one fits, and a table. */
export function ResultView({ rows: initialRows, chart, source, text }: Props) {
  const [rows, setRows] = useState(initialRows);
  useEffect(() => setRows(initialRows), [initialRows]);
  const single = rows.rows.length === 1 && rows.columns.length === 1;
  const [chartOpen, setChartOpen] = useState(Boolean(chart));
  useEffect(() => setChartOpen(Boolean(chart)), [chart]);
  const shownChart = useMemo(() => chart ?? defaultChart(rows), [chart, rows]);
  return (
    <div class="result stack">
      {(text || shownChart?.kind !== "figure") && <p class="summary-text breaks">{text || summarizeRows(rows)}</p>}
      {rows.truncated && <Truncated rows={rows} source={source} onRows={setRows} />}
      {shownChart && shownChart.kind !== "figure" && (
        <details class="fold" open={chartOpen} onToggle={(event) => setChartOpen(event.currentTarget.open)}>
          <summary>{labels.chart.title}</summary>
          {chartOpen && <ChartPanel rows={rows} chart={shownChart} />}
        </details>
      )}
      {shownChart?.kind === "figure" && <ChartPanel rows={rows} chart={shownChart} />}
      {rows.columns.length > 0 && (rows.rows.length > 0 || rows.truncated) && !(single && shownChart?.kind === "figure") && (
        <TablePanel rows={rows} source={source} />
      )}
    </div>
  );
}

/** Notice that rows are truncated, with a button to fetch more. */
function Truncated({ rows, source, onRows }: { rows: Rows; source: RowSource | undefined; onRows: (rows: Rows) => void }) {
  const [count, setCount] = useState<number | null>(null);
  const [atRowLimit, setAtRowLimit] = useState(rows.rows.length >= maxRows);
  const [problem, setProblem] = useState<ProblemDetails | null>(null);
  const controller = useRef<AbortController | null>(null);
  useEffect(() => () => controller.current?.abort(), []);
  const fetchMore = async () => {
    if (!source) return;
    controller.current = new AbortController();
    setProblem(null);
    setCount(0);
    try {
      const fetched = await fetchRows(source, setCount, controller.current.signal);
      if (fetched.truncated) setAtRowLimit(true);
      if (fetched.rows.length >= rows.rows.length) onRows(fetched);
    } catch (error) {
      if (!isAbortError(error)) setProblem(toProblem(error));
    }
    setCount(null);
  };
  return (
    <div class="notice warn stack">
      <p>{atRowLimit ? labels.rowLimit(formatNumber(rows.rows.length)) : labels.truncated(formatNumber(rows.rows.length))}</p>
      {source && !atRowLimit && (
        <div class="row">
          {count === null ? (
            <button type="button" onClick={() => void fetchMore()}>
              {labels.more}
            </button>
          ) : (
            <>
              <span role="status">{labels.fetching(formatNumber(count))}</span>
              <button type="button" onClick={() => controller.current?.abort()}>
                {labels.stop}
              </button>
            </>
          )}
        </div>
      )}
      {problem && <ErrorBox problem={problem} />}
    </div>
  );
}

function TablePanel({ rows, source }: { rows: Rows; source: RowSource | undefined }) {
  const all = useMemo(() => Uint32Array.from(rows.rows, (_, i) => i), [rows]);
  const [rowIndices, setRowIndices] = useState<Uint32Array>(all);
  const [filter, setFilter] = useState("");
  const [sortOrder, setSortOrder] = useState<SortOrder | null>(null);
  const [busy, setBusy] = useState(false);
  const [selection, setSelection] = useState<Selection | null>(null);
  const [opened, setOpened] = useState<CellPosition | null>(null);
  const [status, setStatus] = useState("");
  const [problem, setProblem] = useState<ProblemDetails | null>(null);

  useEffect(() => {
    if (!filter.trim() && !sortOrder) {
      setRowIndices(all);
      return;
    }
    const controller = new AbortController();
    setBusy(true);
    sortAndFilter(rows, filter, sortOrder, controller.signal).then(
      (arranged) => {
        setRowIndices(arranged);
        setBusy(false);
      },
      (error: unknown) => {
        if (!(error instanceof Superseded)) setProblem(toProblem(error));
      },
    );
    return () => {
      controller.abort();
      setBusy(false);
    };
  }, [rows, all, filter, sortOrder]);

  // Cycle through ascending, descending and the order of the query.
  const sort = (column: number) =>
    setSortOrder((now) => (now?.column !== column ? { column, descending: false } : now.descending ? null : { column, descending: true }));
  const copy = async () => {
    const bounds = selection && selection.active.row >= 0 ? selectionBounds(selection) : null;
    const range = bounds && (bounds.top !== bounds.bottom || bounds.left !== bounds.right) ? bounds : null;
    const copiedRows = range ? rowIndices.subarray(range.top, range.bottom + 1) : rowIndices;
    const columns = rows.columns.map((_, column) => column).filter((column) => !range || (column >= range.left && column <= range.right));
    setStatus((await copyText(tsv(rows, copiedRows, columns))) ? labels.copied(formatNumber(copiedRows.length)) : labels.notCopied);
  };
  const active = selection && selection.active.row >= 0 ? selection.active : null;
  const cell = (position: CellPosition) => rows.rows[rowIndices[position.row] ?? 0]?.[position.column] ?? null;
  const cellName = (position: CellPosition) => labels.cell(rows.columns[position.column] ?? "", formatNumber((rowIndices[position.row] ?? 0) + 1));
  return (
    <div class="table-panel">
      <div class="row table-tools">
        <input
          type="search"
          class="table-filter"
          aria-label={labels.filter}
          placeholder={labels.filter}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <span class="quiet small" role="status">
          {busy ? labels.sorting : status || labels.shown(formatNumber(rowIndices.length), formatNumber(rows.rows.length))}
        </span>
        <span class="row table-actions">
          <button type="button" title={labels.copyHint} onClick={() => void copy()}>
            {labels.copy}
          </button>
          <Export rows={rows} rowIndices={rowIndices} source={source} onError={(error) => setProblem(toProblem(error))} />
        </span>
      </div>
      {problem && <ErrorBox problem={problem} />}
      <Table rows={rows} rowIndices={rowIndices} sortOrder={sortOrder} label={labels.table} onSort={sort} onSelect={setSelection} onOpen={setOpened} />
      {active && (
        <div class="row cell-strip small">
          <span class="quiet cell-name">{cellName(active)}</span>
          <span class="cell-value">{cell(active) === null ? <span class="null">{labels.null}</span> : cellText(cell(active)).slice(0, 200)}</span>
          <button type="button" class="plain small" onClick={() => setOpened(active)}>
            {labels.wholeCell}
          </button>
        </div>
      )}
      {opened && <CellDialog title={cellName(opened)} cell={cell(opened)} close={() => setOpened(null)} />}
    </div>
  );
}
