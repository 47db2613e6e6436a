import { expect, test } from "vitest";
import type { Table } from "../api";
import { joinGraph } from "./join-graph";

const table = (name: string, ...keys: [string, string][]): Table => ({
  name,
  kind: "table",
  columns: [],
  foreign_keys: keys.map(([column, to]) => ({ columns: [column], table: to, references: [column] })),
});
const shop = [table("customers"), table("orders", ["customer_id", "customers"]), table("items", ["order_id", "orders"], ["product_id", "products"]), table("products")];

test("lays out a join path from end to end", () => {
  const { nodes, edges } = joinGraph(["orders", "customers", "items"], shop);
  expect(edges.map((edge) => `${edge.from} > ${edge.to}`)).toEqual(["orders > customers", "items > orders"]);
  expect(nodes.map((node) => [node.name, node.column])).toEqual([["customers", 0], ["orders", 1], ["items", 2]]);
});

test("normalizes qualified and differently cased table names", () => {
  const { nodes, edges } = joinGraph(["public.Orders", '"customers"', "CUSTOMERS"], shop);
  expect(nodes.length).toBe(2);
  expect(edges.length).toBe(1);
});

test("stacks unconnected tables", () => {
  const { nodes } = joinGraph(["customers", "products"], shop);
  expect(nodes.map(({ column, row }) => [column, row])).toEqual([[0, 0], [0, 1]]);
  expect(joinGraph([], shop)).toEqual({ nodes: [], edges: [] });
});
