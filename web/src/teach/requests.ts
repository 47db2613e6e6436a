import { api, json, queryString } from "../api";

const id = encodeURIComponent;

/** Requests for feedback and examples. */
export const feedbackApi = {
  /**
   * Rates an answer: a correct one is stored as an example, whose id is returned; for a wrong one,
   * learned examples are removed.
   */
  rateAnswer: (trace: string, good: boolean) => json<{ example_id: string | null }>(`/v1/traces/${id(trace)}/feedback`, { body: { good } }),
  /** Approves or rejects an example. Rejected ones are not learned again. */
  rateExample: (example: string, good: boolean, database: string) =>
    json<void>(`/v1/examples/${id(example)}/feedback${queryString({ database })}`, { body: { good } }),
  remove: (example: string, database: string) => api.removeExample(example, database),
  add: (question: string, sql: string, database: string, shared: boolean) => api.addExample({ question, sql, database, shared }),
};
