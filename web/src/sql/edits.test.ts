import { expect, test } from "vitest";
import { applyEdits } from "./edits";

test("applies edits given as byte spans", () => {
  const sql = "SELECT 'é', id, prise FROM p";
  const byte = (text: string) => new TextEncoder().encode(sql.slice(0, sql.indexOf(text))).length;
  const edits = [
    { span: { start: byte("id"), end: byte("id") + 2 }, text: "product_id" },
    { span: { start: byte("prise"), end: byte("prise") + 5 }, text: "price" },
    { span: { start: byte("FROM"), end: byte("FROM") }, text: "AS x " },
  ];
  expect(applyEdits(sql, edits)).toBe("SELECT 'é', product_id, price AS x FROM p");
});

test("applies deletions", () => {
  expect(applyEdits("SELECT 1;", [{ span: { start: 8, end: 9 }, text: "" }])).toBe("SELECT 1");
});
