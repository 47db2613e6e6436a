import { describe, expect, test } from "vitest";
import type { Table } from "../api";
import { sampleQuery, tablesWithin, incomingForeignKeys, search } from "./tables";

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

describe("schema tables", () => {
  test("finds tables by name first, then by column", () => {
    expect(search(tables, "order").map((one) => one.name)).toEqual(["orders", "order_items"]);
    expect(search(tables, "CUSTOMER id").map((one) => one.name)).toEqual(["customers", "orders"]);
    expect(search(tables, "nothing")).toEqual([]);
    expect(search(tables, "  ")).toEqual(tables);
  });

  test("finds incoming foreign keys", () => {
    expect(incomingForeignKeys(tables, customers).map((one) => one.table.name)).toEqual(["orders"]);
  });

  test("distinguishes tables of the same name by schema", () => {
    const own = table("orders", ["id"], [], "shop");
    const other = table("orders", ["id"], [], "archive");
    const lines = table("lines", ["id"], ["orders"], "archive");
    expect(incomingForeignKeys([own, other, lines], own)).toEqual([]);
    expect(incomingForeignKeys([own, other, lines], other)).toHaveLength(1);
  });

  test("finds tables within a foreign-key distance", () => {
    expect(tablesWithin(tables, customers, 1)).toEqual([customers, orders]);
    expect(tablesWithin(tables, customers, 2)).toEqual(tables);
  });

  test("quotes identifiers of a sample query by dialect", () => {
    expect(sampleQuery(table('odd "name"', ["a", "order"]), "sqlite", 5)).toBe('SELECT "a", "order" FROM "odd ""name""" LIMIT 5');
    expect(sampleQuery(table("t", ["a"], [], "s"), "mysql", 5)).toBe("SELECT `a` FROM `s`.`t` LIMIT 5");
  });
});
