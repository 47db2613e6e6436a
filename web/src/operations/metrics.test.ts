import { expect, test } from "vitest";
import { attemptCounts, outcomes, costByModel } from "./metrics";
import { parseMetrics } from "./prometheus";
import type { TraceSummary } from "../api";

const samples = parseMetrics(`querymend_questions_total{database="a",outcome="answered",stop="answered"} 6
querymend_questions_total{database="b",outcome="gave_up",stop="max_attempts"} 2
querymend_questions_total{database="b",outcome="chat",stop="chat"} 1
querymend_questions_total{database="b",outcome="abandoned",stop="cancelled"} 1
querymend_corrections_total{database="a",by="rule",successful="true"} 3
querymend_corrections_total{database="a",by="model",successful="false"} 1
querymend_model_tokens_total{model="m",direction="input"} 100
querymend_model_tokens_total{model="m",direction="output"} 20
querymend_model_tokens_total{model="priced",direction="input"} 7
querymend_model_cost_usd_total{model="priced"} 0.25
`);

test("sums outcomes over all databases", () => {
  expect(outcomes(samples)).toMatchObject({ asked: 10, answered: 6, failed: 3, corrections: 4, successful: 3, median: null });
});

test("reports an unknown price as null, not zero", () => {
  expect(costByModel(samples)).toEqual([
    { model: "m", input: 100, output: 20, usd: null },
    { model: "priced", input: 7, output: 0, usd: 0.25 },
  ]);
});

test("counts questions by number of attempts", () => {
  const past = (status: string, attempts: number) => ({ status, attempts }) as TraceSummary;
  const all = [past("answered", 1), past("answered", 0), past("answered", 3), past("gave_up", 3), past("chat", 1)];
  expect(attemptCounts(all)).toEqual({ first: 2, corrected: 1, failed: 1 });
});
