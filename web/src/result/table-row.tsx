import { memo } from "./memo";
import type { Cell } from "../api";
import { strings } from "../strings";
import { truncatedText } from "./text";
import { cellId, rowHeight } from "./table";

interface Props {
  id: string;
  row: number;
  cells: readonly Cell[];
  number: string;
  numericColumns: readonly boolean[];
  /** First and last selected column of the row; -1 for none. */
  firstSelected: number;
  lastSelected: number;
  activeColumn: number;
}

/** Memoized: most rows do not change while scrolling. */
export const TableRow = memo(function TableRow({ id, row, cells, number, numericColumns, firstSelected, lastSelected, activeColumn }: Props) {
  return (
    <div role="row" class="grid-row" aria-rowindex={row + 2} data-row={row} style={{ transform: `translateY(${row * rowHeight}px)` }}>
      <div role="rowheader" class="grid-number">
        {number}
      </div>
      {cells.map((cell, column) => {
        const selected = firstSelected >= 0 && column >= firstSelected && column <= lastSelected;
        return (
          <div
            key={column}
            id={activeColumn === column ? cellId(id, { row, column }) : undefined}
            role="gridcell"
            aria-selected={selected || undefined}
            class={cellClass(numericColumns[column] ?? false, selected, activeColumn === column)}
            data-column={column}
          >
            {cell === null ? <span class="null">{strings.result.null}</span> : truncatedText(cell)}
          </div>
        );
      })}
    </div>
  );
});

function cellClass(right: boolean, selected: boolean, active: boolean): string | undefined {
  if (!right && !selected && !active) return undefined;
  return [right && "grid-right", selected && "grid-selected", active && "grid-active"].filter(Boolean).join(" ");
}
