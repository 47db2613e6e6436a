/** A place in the table as it is shown. Row -1 is the head. */
export interface Place {
  row: number;
  column: number;
}

export interface Selection {
  active: Place;
  /** The other corner of what is selected. */
  anchor: Place;
}

export interface Extent {
  rows: number;
  columns: number;
  /** Rows that fit on the screen. */
  page: number;
}

/** Where a key leads; nothing where the key means nothing here. */
export function moved(selection: Selection, key: string, { shift, control }: { shift: boolean; control: boolean }, extent: Extent): Selection | null {
  const { row, column } = selection.active;
  const lastRow = extent.rows - 1;
  const lastColumn = extent.columns - 1;
  const to = (): Place | null => {
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
  const place = to();
  if (!place) return null;
  const active = { row: clamp(place.row, shift ? 0 : -1, lastRow), column: clamp(place.column, 0, lastColumn) };
  return { active, anchor: shift && selection.anchor.row >= 0 ? selection.anchor : active };
}

export function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}

export interface Box {
  top: number;
  bottom: number;
  left: number;
  right: number;
}

export function boxOf({ active, anchor }: Selection): Box {
  return {
    top: Math.min(active.row, anchor.row),
    bottom: Math.max(active.row, anchor.row),
    left: Math.min(active.column, anchor.column),
    right: Math.max(active.column, anchor.column),
  };
}

export function inside(box: Box, row: number, column: number): boolean {
  return row >= box.top && row <= box.bottom && column >= box.left && column <= box.right;
}
