import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Chart, Rows, Told } from "../api";
import { copyText } from "../clipboard";
import { strings } from "../strings";
import { isAborted, toldOf, TroubleNotice } from "../trouble";
import { CellDialog } from "./cell-dialog";
import { anyChart, ChartPanel } from "./chart";
import { Export } from "./export";
import { fetchRows, mostRows, type Source } from "./more";
import { arrange, Overtaken, type Sorting } from "./order";
import { boxOf, type Place, type Selection } from "./selection";
import { Table } from "./table";
import { figure, textOf, tsv } from "./text";
import { inWords } from "./words";

export type { Source };

interface Props {
  rows: Rows;
  chart?: Chart | null | undefined;
  /** Where the rows can be fetched again, for more of them and for other formats. Without it only what is here can be exported. */
  source?: Source | undefined;
  /** Words that came with the rows; without them the rows are put into words here. */
  text?: string | null | undefined;
}

const words = strings.result;

/** Rows in words, as a picture where one fits, and as a table. */
export function ResultView({ rows: given, chart, source, text }: Props) {
  const [rows, setRows] = useState(given);
  useEffect(() => setRows(given), [given]);
  const single = rows.rows.length === 1 && rows.columns.length === 1;
  const [pictured, setPictured] = useState(Boolean(chart));
  useEffect(() => setPictured(Boolean(chart)), [chart]);
  const picture = useMemo(() => chart ?? anyChart(rows), [chart, rows]);
  return (
    <div class="result stack">
      {(text || picture?.kind !== "figure") && <p class="in-words breaks">{text || inWords(rows)}</p>}
      {rows.truncated && <Truncated rows={rows} source={source} take={setRows} />}
      {picture && picture.kind !== "figure" && (
        <details class="fold" open={pictured} onToggle={(event) => setPictured(event.currentTarget.open)}>
          <summary>{words.chart.title}</summary>
          {pictured && <ChartPanel rows={rows} chart={picture} />}
        </details>
      )}
      {picture?.kind === "figure" && <ChartPanel rows={rows} chart={picture} />}
      {rows.columns.length > 0 && (rows.rows.length > 0 || rows.truncated) && !(single && picture?.kind === "figure") && (
        <TablePanel rows={rows} source={source} />
      )}
    </div>
  );
}

/** Says that there is more, and fetches it where that is possible. */
function Truncated({ rows, source, take }: { rows: Rows; source: Source | undefined; take: (rows: Rows) => void }) {
  const [count, setCount] = useState<number | null>(null);
  const [most, setMost] = useState(rows.rows.length >= mostRows);
  const [told, setTold] = useState<Told | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  const more = async () => {
    if (!source) return;
    stop.current = new AbortController();
    setTold(null);
    setCount(0);
    try {
      const fetched = await fetchRows(source, setCount, stop.current.signal);
      if (fetched.truncated) setMost(true);
      if (fetched.rows.length >= rows.rows.length) take(fetched);
    } catch (error) {
      if (!isAborted(error)) setTold(toldOf(error));
    }
    setCount(null);
  };
  return (
    <div class="notice warn stack">
      <p>{most ? words.most(figure(rows.rows.length)) : words.truncated(figure(rows.rows.length))}</p>
      {source && !most && (
        <div class="row">
          {count === null ? (
            <button type="button" onClick={() => void more()}>
              {words.more}
            </button>
          ) : (
            <>
              <span role="status">{words.fetching(figure(count))}</span>
              <button type="button" onClick={() => stop.current?.abort()}>
                {words.stop}
              </button>
            </>
          )}
        </div>
      )}
      {told && <TroubleNotice told={told} />}
    </div>
  );
}

function TablePanel({ rows, source }: { rows: Rows; source: Source | undefined }) {
  const all = useMemo(() => Uint32Array.from(rows.rows, (_, i) => i), [rows]);
  const [places, setPlaces] = useState<Uint32Array>(all);
  const [filter, setFilter] = useState("");
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [busy, setBusy] = useState(false);
  const [selection, setSelection] = useState<Selection | null>(null);
  const [opened, setOpened] = useState<Place | null>(null);
  const [said, say] = useState("");
  const [told, setTold] = useState<Told | null>(null);

  useEffect(() => {
    if (!filter.trim() && !sorting) {
      setPlaces(all);
      return;
    }
    const stop = new AbortController();
    setBusy(true);
    arrange(rows, filter, sorting, stop.signal).then(
      (arranged) => {
        setPlaces(arranged);
        setBusy(false);
      },
      (error: unknown) => {
        if (!(error instanceof Overtaken)) setTold(toldOf(error));
      },
    );
    return () => {
      stop.abort();
      setBusy(false);
    };
  }, [rows, all, filter, sorting]);

  // A third press on a head gives back the query's own order.
  const sort = (column: number) =>
    setSorting((now) => (now?.column !== column ? { column, down: false } : now.down ? null : { column, down: true }));
  const copy = async () => {
    const box = selection && selection.active.row >= 0 ? boxOf(selection) : null;
    const several = box && (box.top !== box.bottom || box.left !== box.right) ? box : null;
    const taken = several ? places.subarray(several.top, several.bottom + 1) : places;
    const columns = rows.columns.map((_, column) => column).filter((column) => !several || (column >= several.left && column <= several.right));
    say((await copyText(tsv(rows, taken, columns))) ? words.copied(figure(taken.length)) : words.notCopied);
  };
  const active = selection && selection.active.row >= 0 ? selection.active : null;
  const cell = (place: Place) => rows.rows[places[place.row] ?? 0]?.[place.column] ?? null;
  const name = (place: Place) => words.cell(rows.columns[place.column] ?? "", figure((places[place.row] ?? 0) + 1));
  return (
    <div class="table-panel">
      <div class="row table-tools">
        <input
          type="search"
          class="table-filter"
          aria-label={words.filter}
          placeholder={words.filter}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <span class="quiet small" role="status">
          {busy ? words.sorting : said || words.shown(figure(places.length), figure(rows.rows.length))}
        </span>
        <span class="row table-actions">
          <button type="button" title={words.copyWhat} onClick={() => void copy()}>
            {words.copy}
          </button>
          <Export rows={rows} places={places} source={source} fail={(error) => setTold(toldOf(error))} />
        </span>
      </div>
      {told && <TroubleNotice told={told} />}
      <Table rows={rows} places={places} sorting={sorting} label={words.table} sort={sort} select={setSelection} open={setOpened} />
      {active && (
        <div class="row cell-strip small">
          <span class="quiet cell-name">{name(active)}</span>
          <span class="cell-value">{cell(active) === null ? <span class="null">{words.null}</span> : textOf(cell(active)).slice(0, 200)}</span>
          <button type="button" class="plain small" onClick={() => setOpened(active)}>
            {words.wholeCell}
          </button>
        </div>
      )}
      {opened && <CellDialog title={name(opened)} cell={cell(opened)} close={() => setOpened(null)} />}
    </div>
  );
}
