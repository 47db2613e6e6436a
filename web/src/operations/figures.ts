import { below, parted, total, type Sample } from "./prometheus";
import type { Past } from "./requests";

/** How questions ended, since the server was started. */
export function outcomes(samples: Sample[]) {
  const questions = "querymend_questions_total";
  const asked = total(samples, questions);
  const answered = total(samples, questions, { outcome: "answered" });
  const talked = total(samples, questions, { outcome: "chat" }) + total(samples, questions, { outcome: "ask_user" });
  return {
    asked,
    answered,
    failed: asked - answered - talked,
    fromMemory: total(samples, "querymend_cache_hits_total"),
    corrections: total(samples, "querymend_corrections_total"),
    successful: total(samples, "querymend_corrections_total", { successful: "true" }),
    median: below(samples, "querymend_question_duration_seconds", 0.5),
    slowest: below(samples, "querymend_question_duration_seconds", 0.95),
  };
}

/** What models took, each on its own. */
export function spending(samples: Sample[]): { model: string; input: number; output: number; usd: number | null }[] {
  const tokens = "querymend_model_tokens_total";
  const cost = "querymend_model_cost_usd_total";
  const priced = new Set(parted(samples, cost, "model").map(([model]) => model));
  return parted(samples, tokens, "model").map(([model]) => ({
    model,
    input: total(samples, tokens, { model, direction: "input" }),
    output: total(samples, tokens, { model, direction: "output" }),
    // A price that nobody knows is not a price of nothing.
    usd: priced.has(model) ? total(samples, cost, { model }) : null,
  }));
}

/** Of past questions: answered by the first draft, answered after the model was asked again, and not answered. */
export function drafts(past: Past[]): { first: number; corrected: number; failed: number } {
  const answered = past.filter((one) => one.status === "answered");
  const first = answered.filter((one) => one.attempts <= 1).length;
  const failed = past.filter((one) => one.status === "gave_up" || one.status === "failed").length;
  return { first, corrected: answered.length - first, failed };
}
