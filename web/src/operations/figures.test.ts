import { expect, test } from "vitest";
import { drafts, outcomes, spending } from "./figures";
import { readFigures } from "./prometheus";
import type { Past } from "./requests";

const samples = readFigures(`querymend_questions_total{database="a",outcome="answered",stop="answered"} 6
querymend_questions_total{database="b",outcome="gave_up",stop="attempts_spent"} 2
querymend_questions_total{database="b",outcome="chat",stop="talked"} 1
querymend_questions_total{database="b",outcome="abandoned",stop="cancelled"} 1
querymend_corrections_total{database="a",by="rule",successful="true"} 3
querymend_corrections_total{database="a",by="model",successful="false"} 1
querymend_model_tokens_total{model="m",direction="input"} 100
querymend_model_tokens_total{model="m",direction="output"} 20
querymend_model_tokens_total{model="priced",direction="input"} 7
querymend_model_cost_usd_total{model="priced"} 0.25
`);

test("outcomes are told over all databases", () => {
  expect(outcomes(samples)).toMatchObject({ asked: 10, answered: 6, failed: 3, corrections: 4, successful: 3, median: null });
});

test("a price that is not known is not nothing", () => {
  expect(spending(samples)).toEqual([
    { model: "m", input: 100, output: 20, usd: null },
    { model: "priced", input: 7, output: 0, usd: 0.25 },
  ]);
});

test("questions are parted by how many drafts they took", () => {
  const past = (status: string, attempts: number) => ({ status, attempts }) as Past;
  const all = [past("answered", 1), past("answered", 0), past("answered", 3), past("gave_up", 3), past("chat", 1)];
  expect(drafts(all)).toEqual({ first: 2, corrected: 1, failed: 1 });
});
