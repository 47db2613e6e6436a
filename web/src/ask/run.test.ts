import { expect, test } from "vitest";
import type { Event } from "../api";
import { draftShown, emptyRun, heard, type Run } from "./run";

const told = (events: Event[]): Run => events.reduce((run, event, i) => heard(run, event, i), emptyRun);
const extracted = { tables: ["p"], ctes: [], aliases: [], allowed_tables: null, sql: "" };

test("events become steps with what came of them", () => {
  const run = told([
    { event: "started", trace_id: "t", question: "q", database: "d", model: "m", dialect: "sqlite", max_attempts: 3 },
    { event: "stage", stage: "schema_discovery", attempt: 1 },
    { event: "stage", stage: "pattern_selection", attempt: 1 },
    { event: "linked", tables: ["p"], of: 9 },
    { event: "stage", stage: "generation", attempt: 1 },
    { event: "text", piece: "SEL" },
    { event: "text", piece: "ECT" },
    { event: "drafted", attempt: 1, text: "SELECT 1", usage: { input_tokens: 1, output_tokens: 1, usd: null } },
    { event: "stage", stage: "guardrail_check", attempt: 1 },
    { event: "reviewed", attempt: 1, sql: "SELECT 1", approved: true, findings: [], extracted },
    { event: "stage", stage: "self_correction", attempt: 1 },
    { event: "mended", attempt: 1, before: "a", after: "b", applied: [], changes: [{ before: "a", after: "b" }] },
    { event: "stage", stage: "tool_execution", attempt: 1 },
    { event: "rejected", attempt: 1, sql: "b", error: { code: "1", message: "no" }, finding: "f", error_type: "unknown" },
    { event: "retrying", attempt: 2, of: 3, strategy: "s", feedback: [{ kind: "k", text: "told" }] },
    { event: "stage", stage: "generation", attempt: 2 },
    { event: "text", piece: "again" },
  ]);
  expect(run.steps.map((step) => [step.kind, step.attempt, step.ended !== null])).toEqual([
    ["link", 1, true],
    ["recall", 1, true],
    ["draft", 1, true],
    ["check", 1, true],
    ["mend", 1, true],
    ["run", 1, true],
    ["retry", 2, true],
    ["draft", 2, false],
  ]);
  expect(run.steps[0]).toMatchObject({ tables: ["p"], of: 9 });
  expect(run.steps[2]?.text).toBe("SELECT 1");
  expect(run.steps[5]?.error).toBe("no");
  expect(run.steps[7]?.text).toBe("again");
});

test("a second review of one attempt is a step of its own", () => {
  const review: Event = { event: "reviewed", attempt: 1, sql: "x", approved: true, findings: [], extracted };
  expect(told([{ event: "stage", stage: "guardrail_check", attempt: 1 }, review, review]).steps.length).toBe(2);
});

test("what a newer server tells is passed over", () => {
  expect(heard(emptyRun, { event: "dreamt" } as never, 0)).toBe(emptyRun);
});

test("a draft is shown without its fence, also while it is written", () => {
  expect(draftShown("Sure:\n```sql\nSELECT")).toBe("SELECT");
  expect(draftShown("```sql\nSELECT 1\n```\nThere.")).toBe("SELECT 1");
  expect(draftShown("SELECT 1")).toBe("SELECT 1");
});
