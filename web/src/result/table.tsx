import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Rows } from "../api";
import { strings } from "../strings";
import { TableRow } from "./table-row";
import type { Sorting } from "./order";
import { boxOf, moved, type Place, type Selection } from "./selection";
import { figure, numeric, shownText, textOf, tsv } from "./text";

/** Every row is as high as any other, so that a place on the screen says which row it is. In step with `result.css`. */
export const rowHeight = 30;
/** Rows that are drawn above and below what is seen, so that nothing is blank while scrolling. */
const spare = 10;
/** Only when so many rows were scrolled by, others are drawn. */
const leap = 5 * rowHeight;

interface Props {
  rows: Rows;
  /** Which rows are shown, in which order. */
  places: Uint32Array;
  sorting: Sorting | null;
  label: string;
  sort: (column: number) => void;
  select: (selection: Selection | null) => void;
  open: (place: Place) => void;
}

/** A table of any length: only the rows that are seen are part of the document. */
export function Table({ rows, places, sorting, label, sort, select, open }: Props) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(300);
  const [selection, setSelection] = useState<Selection | null>(null);
  const right = useMemo(() => rows.columns.map((_, column) => numeric(rows, column, 500)), [rows]);
  const columns = useMemo(() => widths(rows), [rows]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setHeight(element.clientHeight));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    choose(null);
    box.current?.scrollTo({ top: 0 });
  }, [places]);

  const choose = (next: Selection | null) => {
    setSelection(next);
    select(next);
  };
  // The active cell is scrolled into view after the table knows it, and never below the head.
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !selection || selection.active.row < 0) return;
    const from = selection.active.row * rowHeight;
    const room = element.clientHeight - rowHeight;
    if (from < element.scrollTop) element.scrollTop = from;
    else if (from + rowHeight > element.scrollTop + room) element.scrollTop = from + rowHeight - room;
    const cell = document.getElementById(cellId(id, selection.active));
    const edge = element.querySelector<HTMLElement>(".grid-number")?.offsetWidth ?? 0;
    if (!cell) return;
    if (cell.offsetLeft < element.scrollLeft + edge) element.scrollLeft = cell.offsetLeft - edge;
    else if (cell.offsetLeft + cell.offsetWidth > element.scrollLeft + element.clientWidth)
      element.scrollLeft = cell.offsetLeft + Math.min(cell.offsetWidth, element.clientWidth - edge) - element.clientWidth;
  }, [selection]);

  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(places.length, Math.ceil((top + leap + height) / rowHeight) + spare);
  const chosen = selection && boxOf(selection);
  const activeSeen = selection && (selection.active.row < 0 || (selection.active.row >= first && selection.active.row < last));

  const press = (event: KeyboardEvent) => {
    const control = event.ctrlKey || event.metaKey;
    const extent = { rows: places.length, columns: rows.columns.length, page: Math.max(1, Math.floor(height / rowHeight) - 2) };
    if (control && event.key.toLowerCase() === "a") {
      event.preventDefault();
      choose({ anchor: { row: 0, column: 0 }, active: { row: places.length - 1, column: rows.columns.length - 1 } });
      return;
    }
    if (event.key === "Escape" && selection) {
      event.stopPropagation();
      choose(null);
      return;
    }
    if (event.key === "Enter" && selection) {
      event.preventDefault();
      if (selection.active.row < 0) sort(selection.active.column);
      else open(selection.active);
      return;
    }
    const start: Selection = selection ?? { active: { row: -1, column: 0 }, anchor: { row: -1, column: 0 } };
    const next = moved(start, event.key, { shift: event.shiftKey, control }, extent);
    if (next) {
      event.preventDefault();
      choose(next);
    }
  };
  const copy = (event: ClipboardEvent) => {
    if (!chosen || chosen.top < 0 || String(getSelection())) return;
    const from = places.subarray(chosen.top, chosen.bottom + 1);
    const taken = rows.columns.map((_, column) => column).filter((column) => column >= chosen.left && column <= chosen.right);
    const one = from.length === 1 && taken.length === 1;
    const text = one ? textOf(rows.rows[from[0] ?? 0]?.[taken[0] ?? 0]) : tsv(rows, from, taken);
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  const point = (event: PointerEvent) => {
    const place = placeOf(event.target);
    if (!place || (event.type === "pointerover" && (event.buttons !== 1 || !selection))) return;
    if (event.type === "pointerdown" && event.button !== 0) return;
    const keep = selection && (event.shiftKey || event.type === "pointerover");
    choose({ active: place, anchor: keep ? selection.anchor : place });
  };

  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={places.length + 1}
      aria-multiselectable="true"
      aria-activedescendant={activeSeen ? cellId(id, selection.active) : undefined}
      style={{ "--columns": columns.tracks, "--least": columns.least }}
      onScroll={(event) => setTop(Math.floor(event.currentTarget.scrollTop / leap) * leap)}
      onKeyDown={press}
      onCopy={copy}
      onPointerDown={point}
      onPointerOver={point}
      onDblClick={(event) => {
        const place = placeOf(event.target);
        if (place) open(place);
      }}
    >
      <div role="rowgroup" class="grid-head">
        <div role="row" class="grid-row" aria-rowindex={1}>
          <div role="columnheader" class="grid-number">
            <span class="unseen">{strings.result.rowNumber}</span>
          </div>
          {rows.columns.map((name, column) => {
            const sorted = sorting?.column === column ? (sorting.down ? "descending" : "ascending") : undefined;
            const active = selection?.active.row === -1 && selection.active.column === column;
            return (
              <div
                key={column}
                id={cellId(id, { row: -1, column })}
                role="columnheader"
                aria-sort={sorted ?? "none"}
                class={`${right[column] ? "grid-right" : ""} ${active ? "grid-active" : ""}`}
              >
                <button type="button" tabIndex={-1} title={strings.result.sortBy(name)} onClick={() => sort(column)}>
                  <span class="grid-name">{name || strings.result.noName}</span>
                  {sorted && <span aria-hidden="true">{sorting?.down ? "↓" : "↑"}</span>}
                </button>
              </div>
            );
          })}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${places.length * rowHeight}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => {
          const row = first + i;
          const touched = chosen !== null && row >= chosen.top && row <= chosen.bottom;
          return (
            <TableRow
              key={row}
              id={id}
              row={row}
              cells={rows.rows[places[row] ?? 0] ?? empty}
              number={figure((places[row] ?? 0) + 1)}
              right={right}
              left={touched ? chosen.left : -1}
              until={touched ? chosen.right : -1}
              active={selection?.active.row === row ? selection.active.column : -1}
            />
          );
        })}
      </div>
    </div>
  );
}

const empty: Rows["rows"][number] = [];

export function cellId(table: string, { row, column }: Place): string {
  return `${table}-${row}-${column}`;
}

function placeOf(target: EventTarget | null): Place | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[data-column]") : null;
  const row = cell?.parentElement?.dataset["row"];
  return cell && row !== undefined ? { row: Number(row), column: Number(cell.dataset["column"]) } : null;
}

/**
 * Columns are as wide as what stands in the first rows, within reason, and share what room is left. The least width of all together is
 * said too: a row that were as wide as its own content would not stand in line with the others.
 */
function widths(rows: Rows): { tracks: string; least: string } {
  const number = String(rows.rows.length).length + 3;
  const each = rows.columns.map((name, column) => {
    let most = name.length + 2;
    for (let i = 0; i < 100 && i < rows.rows.length; i++) most = Math.max(most, shownText(rows.rows[i]?.[column]).length);
    return Math.max(7, Math.min(most + 3, 42));
  });
  const tracks = [`${number}ch`, ...each.map((width) => `minmax(${width}ch, 1fr)`)].join(" ");
  return { tracks, least: `${each.reduce((sum, width) => sum + width, number)}ch` };
}
