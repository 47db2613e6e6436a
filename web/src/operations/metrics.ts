import { quantile, sumByLabel, sumMetric, type Sample } from "./prometheus";
import type { TraceSummary } from "../api";

/** Counts questions by outcome, since server start. */
export function outcomes(samples: Sample[]) {
  const questions = "querymend_questions_total";
  const asked = sumMetric(samples, questions);
  const answered = sumMetric(samples, questions, { outcome: "answered" });
  const conversational = sumMetric(samples, questions, { outcome: "chat" }) + sumMetric(samples, questions, { outcome: "ask_user" });
  return {
    asked,
    answered,
    failed: asked - answered - conversational,
    fromMemory: sumMetric(samples, "querymend_cache_hits_total"),
    corrections: sumMetric(samples, "querymend_corrections_total"),
    successful: sumMetric(samples, "querymend_corrections_total", { successful: "true" }),
    median: quantile(samples, "querymend_question_duration_seconds", 0.5),
    p95: quantile(samples, "querymend_question_duration_seconds", 0.95),
  };
}

/** Sums tokens and cost per model. */
export function costByModel(samples: Sample[]): { model: string; input: number; output: number; usd: number | null }[] {
  const tokens = "querymend_model_tokens_total";
  const cost = "querymend_model_cost_usd_total";
  const priced = new Set(sumByLabel(samples, cost, "model").map(([model]) => model));
  return sumByLabel(samples, tokens, "model").map(([model]) => ({
    model,
    input: sumMetric(samples, tokens, { model, direction: "input" }),
    output: sumMetric(samples, tokens, { model, direction: "output" }),
    // An unknown price is null, not zero.
    usd: priced.has(model) ? sumMetric(samples, cost, { model }) : null,
  }));
}

/**
 * Counts past questions: answered by the first attempt, answered after a correction, not answered.
 */
export function attemptCounts(traces: TraceSummary[]): { first: number; corrected: number; failed: number } {
  const answered = traces.filter((one) => one.status === "answered");
  const first = answered.filter((one) => one.attempts <= 1).length;
  const failed = traces.filter((one) => one.status === "gave_up" || one.status === "failed").length;
  return { first, corrected: answered.length - first, failed };
}
