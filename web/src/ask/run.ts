import type { Answer, Applied, Change, Event, Extracted, Finding, Stage } from "../api";

export type StepKind = "link" | "recall" | "draft" | "check" | "run" | "mend" | "retry" | "fallback";

/** One thing that was done for a question, with what came of it. */
export interface Step {
  kind: StepKind;
  attempt: number;
  /** When it began and ended, in milliseconds since the question was asked. */
  begun: number;
  ended: number | null;
  tables?: string[];
  of?: number;
  known?: string | null | undefined;
  examples?: number;
  /** What the model has written so far. */
  text?: string;
  agree?: [number, number];
  sql?: string;
  findings?: Finding[];
  extracted?: Extracted;
  approved?: boolean;
  before?: string;
  after?: string;
  applied?: Applied[];
  changes?: Change[];
  rows?: number;
  truncated?: boolean;
  ms?: number;
  error?: string;
  strategy?: string;
}

/** How far a question has come. */
export interface Run {
  traceId: string;
  model: string;
  dialect: string;
  maxAttempts: number;
  stage: Stage | null;
  steps: Step[];
  answer: Answer | null;
}

export const emptyRun: Run = { traceId: "", model: "", dialect: "", maxAttempts: 0, stage: null, steps: [], answer: null };

const kinds: Partial<Record<Stage, StepKind>> = {
  schema_discovery: "link",
  pattern_selection: "recall",
  generation: "draft",
  guardrail_check: "check",
  tool_execution: "run",
  self_correction: "mend",
};

/** The run after one more event. */
export function heard(run: Run, event: Event, now: number): Run {
  switch (event.event) {
    case "started":
      return { ...run, traceId: event.trace_id, model: event.model, dialect: event.dialect, maxAttempts: event.max_attempts };
    case "stage":
      return begin({ ...run, stage: event.stage }, kinds[event.stage], event.attempt, now);
    case "linked":
      return filled(run, "link", 1, now, { tables: event.tables, of: event.of });
    case "recalled":
      return filled(run, "recall", 1, now, { known: event.known, examples: event.examples.length, ...(event.trouble && { error: event.trouble }) });
    case "text":
      return written(run, event.piece, now);
    case "drafted":
      return filled(run, "draft", event.attempt, now, { text: event.text });
    case "weighed":
      return filled(run, "draft", event.attempt, now, { agree: [event.agree, event.of] });
    case "reviewed":
      return filled(run, "check", event.attempt, now, {
        sql: event.sql,
        findings: event.findings,
        extracted: event.extracted,
        approved: event.approved,
      });
    case "mended":
      return filled(run, "mend", event.attempt, now, {
        before: event.before,
        after: event.after,
        applied: event.applied,
        changes: event.changes,
      });
    case "executed":
      return filled(run, "run", event.attempt, now, { sql: event.sql, rows: event.rows, truncated: event.truncated, ms: event.ms });
    case "rejected":
      return filled(run, "run", event.attempt, now, { sql: event.sql, error: event.error.message });
    case "retrying":
      return withStep(closed(run, now), {
        kind: "retry",
        attempt: event.attempt,
        begun: now,
        ended: now,
        strategy: event.strategy,
        error: event.feedback.map((one) => one.text).join("\n"),
      });
    case "changed":
      return run;
    case "fell_back":
      return withStep(closed(run, now), { kind: "fallback", attempt: 0, begun: now, ended: null, tables: event.tables });
    case "finished":
      return { ...closed(run, now), answer: event.answer };
    default:
      // A newer server may tell more than this page knows.
      return run;
  }
}

function closed(run: Run, now: number): Run {
  return { ...run, steps: run.steps.map((step) => (step.ended === null ? { ...step, ended: now } : step)) };
}

function withStep(run: Run, step: Step): Run {
  return { ...run, steps: [...run.steps, step] };
}

function begin(run: Run, kind: StepKind | undefined, attempt: number, now: number): Run {
  const before = closed(run, now);
  return kind ? withStep(before, { kind, attempt, begun: now, ended: null }) : before;
}

/** Puts what came into the latest step of its kind and attempt that has not got it yet, or into a new one. */
function filled(run: Run, kind: StepKind, attempt: number, now: number, content: Partial<Step>): Run {
  const at = run.steps.findLastIndex((step) => step.kind === kind && step.attempt === attempt);
  const step = run.steps[at];
  const taken = step && (kind === "check" || kind === "mend" || kind === "run") && (step.sql !== undefined || step.after !== undefined);
  if (!step || taken) return withStep(run, { kind, attempt, begun: now, ended: now, ...content });
  return { ...run, steps: run.steps.with(at, { ...step, ...content }) };
}

function written(run: Run, piece: string, now: number): Run {
  const at = run.steps.findLastIndex((step) => step.kind === "draft");
  const step = run.steps[at];
  if (!step || step.ended !== null) return withStep(run, { kind: "draft", attempt: 1, begun: now, ended: null, text: piece });
  return { ...run, steps: run.steps.with(at, { ...step, text: (step.text ?? "") + piece }) };
}

/** What a model wrote, out of its fence as soon as that is open. */
export function draftShown(text: string): string {
  return text.replace(/^[\s\S]*?```\w*\n?/, "").replace(/\n?```[\s\S]*$/, "");
}
