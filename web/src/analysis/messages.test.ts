import { describe, expect, test } from "vitest";
import { readRows, readWord } from "./messages";

describe("words of the worker", () => {
  test("are taken where they have the right shape", () => {
    const rows = { columns: ["n"], rows: [[1], [null], ["x"]], truncated: false };
    expect(readWord({ kind: "done", rows, printed: "hello" })).toEqual({ kind: "done", rows, printed: "hello" });
    expect(readWord({ kind: "stage", stage: "running" })).toEqual({ kind: "stage", stage: "running" });
    expect(readWord({ kind: "failed", why: 3 })).toEqual({ kind: "failed", why: "", printed: "" });
  });

  test.each([
    null,
    "done",
    [],
    { kind: "stage", stage: "dancing" },
    { kind: "arrived", tables: [{ name: "t", rows: "many", truncated: false }] },
    { kind: "done", rows: { columns: ["a"], rows: [[1, 2]], truncated: false } },
    { kind: "done", rows: { columns: ["a"], rows: [[{ html: "<b>" }]], truncated: false } },
    { kind: "done", rows: { columns: [1], rows: [], truncated: false } },
  ])("are passed over where they have not: %j", (said) => {
    expect(readWord(said)).toBeNull();
  });

  test("a table needs to say whether it was cut", () => {
    expect(readRows({ columns: [], rows: [] })).toBeNull();
  });
});
