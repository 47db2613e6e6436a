import { expect, test } from "vitest";
import type { RunEvent } from "../api";
import { stripFence, emptyRun, applyEvent, type Run } from "./run";

const replay = (events: RunEvent[]): Run => events.reduce((run, event, i) => applyEvent(run, event, i), emptyRun);
const references = { tables: ["p"], ctes: [], aliases: [], allowed_tables: null, sql: "" };

test("reduces events to steps with their results", () => {
  const run = replay([
    { event: "started", trace_id: "t", question: "q", database: "d", model: "m", dialect: "sqlite", max_attempts: 3 },
    { event: "stage", stage: "schema_discovery", attempt: 1 },
    { event: "stage", stage: "pattern_selection", attempt: 1 },
    { event: "schema_linked", tables: ["p"], of: 9 },
    { event: "stage", stage: "generation", attempt: 1 },
    { event: "text", piece: "SEL" },
    { event: "text", piece: "ECT" },
    { event: "drafted", attempt: 1, text: "SELECT 1", usage: { input_tokens: 1, output_tokens: 1, usd: null } },
    { event: "stage", stage: "guardrail_check", attempt: 1 },
    { event: "reviewed", attempt: 1, sql: "SELECT 1", approved: true, findings: [], extracted: references },
    { event: "stage", stage: "self_correction", attempt: 1 },
    { event: "repaired", attempt: 1, before: "a", after: "b", applied: [], changes: [{ before: "a", after: "b" }] },
    { event: "stage", stage: "tool_execution", attempt: 1 },
    { event: "rejected", attempt: 1, sql: "b", error: { code: "1", message: "no" }, finding: "f", error_type: "unknown" },
    { event: "retrying", attempt: 2, of: 3, strategy: "s", feedback: [{ kind: "k", text: "feedback" }] },
    { event: "stage", stage: "generation", attempt: 2 },
    { event: "text", piece: "again" },
  ]);
  expect(run.steps.map((step) => [step.kind, step.attempt, step.endedAt !== null])).toEqual([
    ["link", 1, true],
    ["recall", 1, true],
    ["draft", 1, true],
    ["check", 1, true],
    ["repair", 1, true],
    ["run", 1, true],
    ["retry", 2, true],
    ["draft", 2, false],
  ]);
  expect(run.steps[0]).toMatchObject({ tables: ["p"], of: 9 });
  expect(run.steps[2]?.text).toBe("SELECT 1");
  expect(run.steps[5]?.error).toBe("no");
  expect(run.steps[7]?.text).toBe("again");
});

test("adds a step for a second review of an attempt", () => {
  const review: RunEvent = { event: "reviewed", attempt: 1, sql: "x", approved: true, findings: [], extracted: references };
  expect(replay([{ event: "stage", stage: "guardrail_check", attempt: 1 }, review, review]).steps.length).toBe(2);
});

test("ignores unknown events", () => {
  expect(applyEvent(emptyRun, { event: "unknown" } as never, 0)).toBe(emptyRun);
});

test("strips the Markdown fence, even while streaming", () => {
  expect(stripFence("Sure:\n```sql\nSELECT")).toBe("SELECT");
  expect(stripFence("```sql\nSELECT 1\n```\nThere.")).toBe("SELECT 1");
  expect(stripFence("SELECT 1")).toBe("SELECT 1");
});
