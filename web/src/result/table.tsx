import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Rows } from "../api";
import { strings } from "../strings";
import { TableRow } from "./table-row";
import type { SortOrder } from "./sort-filter";
import { selectionBounds, moveSelection, type CellPosition, type Selection } from "./selection";
import { formatNumber, isNumericColumn, displayText, cellText, tsv } from "./text";

/**
 * Fixed row height in pixels, so that the scroll offset determines the row. Keep in step with
 * `result.css`.
 */
export const rowHeight = 30;
/** Number of rows rendered outside the viewport, to avoid blank areas while scrolling. */
const overscan = 10;
/** Scroll distance, in pixels, after which other rows are rendered. */
const scrollStep = 5 * rowHeight;

interface Props {
  rows: Rows;
  /** Indices of the rows shown, in display order. */
  rowIndices: Uint32Array;
  sortOrder: SortOrder | null;
  label: string;
  onSort: (column: number) => void;
  onSelect: (selection: Selection | null) => void;
  onOpen: (position: CellPosition) => void;
}

/** Virtualized table: only visible rows are in the DOM. */
export function Table({ rows, rowIndices, sortOrder, label, onSort, onSelect, onOpen }: Props) {
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(300);
  const [selection, setSelection] = useState<Selection | null>(null);
  const numericColumns = useMemo(() => rows.columns.map((_, column) => isNumericColumn(rows, column, 500)), [rows]);
  const columns = useMemo(() => columnWidths(rows), [rows]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    changeSelection(null);
    box.current?.scrollTo({ top: 0 });
  }, [rowIndices]);

  const changeSelection = (next: Selection | null) => {
    setSelection(next);
    onSelect(next);
  };
  // Scroll the active cell into view, but not below the sticky header.
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

  const first = Math.max(0, Math.floor(top / rowHeight) - overscan);
  const last = Math.min(rowIndices.length, Math.ceil((top + scrollStep + height) / rowHeight) + overscan);
  const bounds = selection && selectionBounds(selection);
  const isActiveDrawn = selection && (selection.active.row < 0 || (selection.active.row >= first && selection.active.row < last));

  const onKeyDown = (event: KeyboardEvent) => {
    const control = event.ctrlKey || event.metaKey;
    const extent = { rows: rowIndices.length, columns: rows.columns.length, page: Math.max(1, Math.floor(height / rowHeight) - 2) };
    if (control && event.key.toLowerCase() === "a") {
      event.preventDefault();
      changeSelection({ anchor: { row: 0, column: 0 }, active: { row: rowIndices.length - 1, column: rows.columns.length - 1 } });
      return;
    }
    if (event.key === "Escape" && selection) {
      event.stopPropagation();
      changeSelection(null);
      return;
    }
    if (event.key === "Enter" && selection) {
      event.preventDefault();
      if (selection.active.row < 0) onSort(selection.active.column);
      else onOpen(selection.active);
      return;
    }
    const start: Selection = selection ?? { active: { row: -1, column: 0 }, anchor: { row: -1, column: 0 } };
    const next = moveSelection(start, event.key, { shift: event.shiftKey, control }, extent);
    if (next) {
      event.preventDefault();
      changeSelection(next);
    }
  };
  const onCopy = (event: ClipboardEvent) => {
    if (!bounds || bounds.top < 0 || String(getSelection())) return;
    const from = rowIndices.subarray(bounds.top, bounds.bottom + 1);
    const taken = rows.columns.map((_, column) => column).filter((column) => column >= bounds.left && column <= bounds.right);
    const one = from.length === 1 && taken.length === 1;
    const text = one ? cellText(rows.rows[from[0] ?? 0]?.[taken[0] ?? 0]) : tsv(rows, from, taken);
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
  };
  const onPointer = (event: PointerEvent) => {
    const position = positionOf(event.target);
    if (!position || (event.type === "pointerover" && (event.buttons !== 1 || !selection))) return;
    if (event.type === "pointerdown" && event.button !== 0) return;
    const keep = selection && (event.shiftKey || event.type === "pointerover");
    changeSelection({ active: position, anchor: keep ? selection.anchor : position });
  };

  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      tabIndex={0}
      aria-label={label}
      aria-rowcount={rowIndices.length + 1}
      aria-multiselectable="true"
      aria-activedescendant={isActiveDrawn ? cellId(id, selection.active) : undefined}
      style={{ "--columns": columns.tracks, "--least": columns.minWidth }}
      onScroll={(event) => setTop(Math.floor(event.currentTarget.scrollTop / scrollStep) * scrollStep)}
      onKeyDown={onKeyDown}
      onCopy={onCopy}
      onPointerDown={onPointer}
      onPointerOver={onPointer}
      onDblClick={(event) => {
        const position = positionOf(event.target);
        if (position) onOpen(position);
      }}
    >
      <div role="rowgroup" class="grid-head">
        <div role="row" class="grid-row" aria-rowindex={1}>
          <div role="columnheader" class="grid-number">
            <span class="visually-hidden">{strings.result.rowNumber}</span>
          </div>
          {rows.columns.map((name, column) => {
            const sorted = sortOrder?.column === column ? (sortOrder.descending ? "descending" : "ascending") : undefined;
            const active = selection?.active.row === -1 && selection.active.column === column;
            return (
              <div
                key={column}
                id={cellId(id, { row: -1, column })}
                role="columnheader"
                aria-sort={sorted ?? "none"}
                class={`${numericColumns[column] ? "grid-right" : ""} ${active ? "grid-active" : ""}`}
              >
                <button type="button" tabIndex={-1} title={strings.result.sortBy(name)} onClick={() => onSort(column)}>
                  <span class="grid-name">{name || strings.result.noName}</span>
                  {sorted && <span aria-hidden="true">{sortOrder?.descending ? "↓" : "↑"}</span>}
                </button>
              </div>
            );
          })}
        </div>
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${rowIndices.length * rowHeight}px` }}>
        {Array.from({ length: Math.max(0, last - first) }, (_, i) => {
          const row = first + i;
          const touched = bounds !== null && row >= bounds.top && row <= bounds.bottom;
          return (
            <TableRow
              key={row}
              id={id}
              row={row}
              cells={rows.rows[rowIndices[row] ?? 0] ?? empty}
              number={formatNumber((rowIndices[row] ?? 0) + 1)}
              numericColumns={numericColumns}
              firstSelected={touched ? bounds.left : -1}
              lastSelected={touched ? bounds.right : -1}
              activeColumn={selection?.active.row === row ? selection.active.column : -1}
            />
          );
        })}
      </div>
    </div>
  );
}

const empty: Rows["rows"][number] = [];

export function cellId(table: string, { row, column }: CellPosition): string {
  return `${table}-${row}-${column}`;
}

function positionOf(target: EventTarget | null): CellPosition | null {
  const cell = target instanceof Element ? target.closest<HTMLElement>("[data-column]") : null;
  const row = cell?.parentElement?.dataset["row"];
  return cell && row !== undefined ? { row: Number(row), column: Number(cell.dataset["column"]) } : null;
}

/**
 * Computes column widths from the first rows, within limits; columns share the remaining space.
 * Also returns the minimum total width, because rows sized by their own content would not align.
 */
function columnWidths(rows: Rows): { tracks: string; minWidth: string } {
  const number = String(rows.rows.length).length + 3;
  const each = rows.columns.map((name, column) => {
    let most = name.length + 2;
    for (let i = 0; i < 100 && i < rows.rows.length; i++) most = Math.max(most, displayText(rows.rows[i]?.[column]).length);
    return Math.max(7, Math.min(most + 3, 42));
  });
  const tracks = [`${number}ch`, ...each.map((width) => `minmax(${width}ch, 1fr)`)].join(" ");
  return { tracks, minWidth: `${each.reduce((sum, width) => sum + width, number)}ch` };
}
