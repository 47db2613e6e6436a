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
  right: readonly boolean[];
  /** The first and the last column that is selected in this row; -1 for none. */
  left: number;
  until: number;
  active: number;
}

/** A row is drawn again only when something about it changed: most of them stay as they are while one scrolls. */
export const TableRow = memo(function TableRow({ id, row, cells, number, right, left, until, active }: Props) {
  return (
    <div role="row" class="grid-row" aria-rowindex={row + 2} data-row={row} style={{ transform: `translateY(${row * rowHeight}px)` }}>
      <div role="rowheader" class="grid-number">
        {number}
      </div>
      {cells.map((cell, column) => {
        const selected = left >= 0 && column >= left && column <= until;
        return (
          <div
            key={column}
            id={active === column ? cellId(id, { row, column }) : undefined}
            role="gridcell"
            aria-selected={selected || undefined}
            class={look(right[column] ?? false, selected, active === column)}
            data-column={column}
          >
            {cell === null ? <span class="null">{strings.result.null}</span> : truncatedText(cell)}
          </div>
        );
      })}
    </div>
  );
});

function look(right: boolean, selected: boolean, active: boolean): string | undefined {
  if (!right && !selected && !active) return undefined;
  return [right && "grid-right", selected && "grid-selected", active && "grid-active"].filter(Boolean).join(" ");
}
