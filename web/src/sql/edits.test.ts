import { expect, test } from "vitest";
import { applied } from "./edits";

test("edits count bytes and do not move each other", () => {
  const sql = "SELECT 'é', id, prise FROM p";
  const byte = (text: string) => new TextEncoder().encode(sql.slice(0, sql.indexOf(text))).length;
  const edits = [
    { span: { start: byte("id"), end: byte("id") + 2 }, text: "product_id" },
    { span: { start: byte("prise"), end: byte("prise") + 5 }, text: "price" },
    { span: { start: byte("FROM"), end: byte("FROM") }, text: "AS x " },
  ];
  expect(applied(sql, edits)).toBe("SELECT 'é', product_id, price AS x FROM p");
});

test("what is deleted is gone", () => {
  expect(applied("SELECT 1;", [{ span: { start: 8, end: 9 }, text: "" }])).toBe("SELECT 1");
});
