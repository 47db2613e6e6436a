import { describe, expect, test } from "vitest";
import { parseRows, parseWorkerMessage } from "./messages";

describe("worker messages", () => {
  test("accepts messages of the expected shape", () => {
    const rows = { columns: ["n"], rows: [[1], [null], ["x"]], truncated: false };
    expect(parseWorkerMessage({ kind: "done", rows, output: "hello" })).toEqual({ kind: "done", rows, output: "hello" });
    expect(parseWorkerMessage({ kind: "stage", stage: "running" })).toEqual({ kind: "stage", stage: "running" });
    expect(parseWorkerMessage({ kind: "failed", reason: 3 })).toEqual({ kind: "failed", reason: "", output: "" });
  });

  test.each([
    null,
    "done",
    [],
    { kind: "stage", stage: "unknown" },
    { kind: "loaded", tables: [{ name: "t", rows: "many", truncated: false }] },
    { kind: "done", rows: { columns: ["a"], rows: [[1, 2]], truncated: false } },
    { kind: "done", rows: { columns: ["a"], rows: [[{ html: "<b>" }]], truncated: false } },
    { kind: "done", rows: { columns: [1], rows: [], truncated: false } },
  ])("ignores malformed messages: %j", (message) => {
    expect(parseWorkerMessage(message)).toBeNull();
  });

  test("rejects rows without a truncated flag", () => {
    expect(parseRows({ columns: [], rows: [] })).toBeNull();
  });
});
