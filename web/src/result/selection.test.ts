import { expect, test } from "vitest";
import { selectionBounds, moveSelection, type Selection } from "./selection";

const extent = { rows: 100, columns: 5, page: 10 };
const at = (row: number, column: number): Selection => ({ active: { row, column }, anchor: { row, column } });

test("keys move the selection within the table", () => {
  const check = (from: Selection, key: string, row: number, column: number, control = false) =>
    expect(moveSelection(from, key, { shift: false, control }, extent)?.active).toEqual({ row, column });
  check(at(0, 0), "ArrowDown", 1, 0);
  check(at(0, 0), "ArrowUp", -1, 0);
  check(at(-1, 0), "ArrowUp", -1, 0);
  check(at(99, 4), "ArrowDown", 99, 4);
  check(at(99, 4), "ArrowRight", 99, 4);
  check(at(50, 2), "PageDown", 60, 2);
  check(at(5, 2), "PageUp", 0, 2);
  check(at(5, 2), "Home", 5, 0);
  check(at(5, 2), "End", 5, 4);
  check(at(5, 2), "Home", 0, 0, true);
  check(at(5, 2), "End", 99, 4, true);
  expect(moveSelection(at(0, 0), "x", { shift: false, control: false }, extent)).toBeNull();
});

test("shift extends the selection from its anchor", () => {
  const first = moveSelection(at(3, 3), "ArrowUp", { shift: true, control: false }, extent);
  const second = first && moveSelection(first, "ArrowLeft", { shift: true, control: false }, extent);
  expect(second && selectionBounds(second)).toEqual({ top: 2, bottom: 3, left: 2, right: 3 });
});
