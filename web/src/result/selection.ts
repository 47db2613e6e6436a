/** Cell of the table as shown. Row -1 is the header. */
export interface CellPosition {
  row: number;
  column: number;
}

export interface Selection {
  active: CellPosition;
  /** Opposite corner of the selection. */
  anchor: CellPosition;
}

export interface TableExtent {
  rows: number;
  columns: number;
  /** Number of visible rows. */
  page: number;
}

/** Returns the selection after a key press, or null for other keys. */
export function moveSelection(selection: Selection, key: string, { shift, control }: { shift: boolean; control: boolean }, extent: TableExtent): Selection | null {
  const { row, column } = selection.active;
  const lastRow = extent.rows - 1;
  const lastColumn = extent.columns - 1;
  const target = (): CellPosition | null => {
    switch (key) {
      case "ArrowUp":
        return { row: control ? 0 : row - 1, column };
      case "ArrowDown":
        return { row: control ? lastRow : row + 1, column };
      case "ArrowLeft":
        return { row, column: control ? 0 : column - 1 };
      case "ArrowRight":
        return { row, column: control ? lastColumn : column + 1 };
      case "PageUp":
        return { row: Math.max(0, row - extent.page), column };
      case "PageDown":
        return { row: row + extent.page, column };
      case "Home":
        return { row: control ? 0 : row, column: 0 };
      case "End":
        return { row: control ? lastRow : row, column: lastColumn };
      default:
        return null;
    }
  };
  const position = target();
  if (!position) return null;
  const active = { row: clamp(position.row, shift ? 0 : -1, lastRow), column: clamp(position.column, 0, lastColumn) };
  return { active, anchor: shift && selection.anchor.row >= 0 ? selection.anchor : active };
}

export function clamp(value: number, min: number, max: number): number {
  return Math.max(min, Math.min(value, max));
}

export interface Bounds {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

export function selectionBounds({ active, anchor }: Selection): Bounds {
  return {
    top: Math.min(active.row, anchor.row),
    bottom: Math.max(active.row, anchor.row),
    left: Math.min(active.column, anchor.column),
    right: Math.max(active.column, anchor.column),
  };
}

export function inside(box: Bounds, row: number, column: number): boolean {
  return row >= box.top && row <= box.bottom && column >= box.left && column <= box.right;
}
