import { describe, expect, test } from "vitest";
import type { Table } from "../api";
import { firstRows, near, pointers, search } from "./tables";

function table(name: string, columns: string[], pointsAt: string[] = [], schema?: string): Table {
  return {
    name,
    ...(schema && { schema }),
    kind: "table",
    columns: columns.map((column) => ({ name: column, type: "TEXT", nullable: true })),
    foreign_keys: pointsAt.map((target) => ({ columns: ["id"], table: target, references: ["id"], inferred: false })),
  } as Table;
}

const customers = table("customers", ["customer_id", "city"]);
const orders = table("orders", ["order_id", "customer_id"], ["customers"]);
const items = table("order_items", ["order_id", "price"], ["orders"]);
const tables = [customers, orders, items];

describe("tables", () => {
  test("are found by their name first, then by their columns", () => {
    expect(search(tables, "order").map((one) => one.name)).toEqual(["orders", "order_items"]);
    expect(search(tables, "CUSTOMER id").map((one) => one.name)).toEqual(["customers", "orders"]);
    expect(search(tables, "nothing")).toEqual([]);
    expect(search(tables, "  ")).toEqual(tables);
  });

  test("know who points at them", () => {
    expect(pointers(tables, customers).map((one) => one.table.name)).toEqual(["orders"]);
  });

  test("of another schema with the same name are others", () => {
    const own = table("orders", ["id"], [], "shop");
    const other = table("orders", ["id"], [], "archive");
    const lines = table("lines", ["id"], ["orders"], "archive");
    expect(pointers([own, other, lines], own)).toEqual([]);
    expect(pointers([own, other, lines], other)).toHaveLength(1);
  });

  test("are near when few keys lie between them", () => {
    expect(near(tables, customers, 1)).toEqual([customers, orders]);
    expect(near(tables, customers, 2)).toEqual(tables);
  });

  test("are asked for their first rows in the way of their dialect", () => {
    expect(firstRows(table('odd "name"', ["a", "order"]), "sqlite", 5)).toBe('SELECT "a", "order" FROM "odd ""name""" LIMIT 5');
    expect(firstRows(table("t", ["a"], [], "s"), "mysql", 5)).toBe("SELECT `a` FROM `s`.`t` LIMIT 5");
  });
});
