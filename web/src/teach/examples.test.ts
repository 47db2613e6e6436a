import { expect, test } from "vitest";
import type { Example } from "../api";
import { reviewQueue, search } from "./examples";

function example(question: string, more: Partial<Example> = {}): Example {
  return {
    id: question,
    question,
    sql: "SELECT 1",
    database: "shop",
    dialect: "sqlite",
    provenance: "auto",
    standing: "unverified",
    uses: 0,
    helped: 0,
    hurt: 0,
    added: 0,
    ...more,
  };
}

test("finds examples by question or query, newest first", () => {
  const seen = { standing: "verified" } as const;
  const all = [
    example("How many orders?", { ...seen, added: 1 }),
    example("Sales by city", { ...seen, sql: "SELECT city FROM orders", added: 2 }),
    example("Stock", seen),
    example("Orders of today"),
  ];
  expect(search(all, "ORDERS", "").map((one) => one.question)).toEqual(["Sales by city", "How many orders?"]);
  expect(search(all, "", "rejected")).toEqual([]);
});

test("orders the review queue by use", () => {
  const all = [example("a"), example("b", { uses: 3 }), example("c", { standing: "verified", uses: 9 })];
  expect(reviewQueue(all).map((one) => one.question)).toEqual(["b", "a"]);
});
