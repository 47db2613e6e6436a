import { api, json, query } from "../api";

const id = encodeURIComponent;

/** What people say about answers and examples. */
export const teaching = {
  /** A right answer becomes an example, whose id comes back; of a wrong one, what was learnt is taken back. */
  judge: (trace: string, good: boolean) => json<{ example_id: string | null }>(`/v1/traces/${id(trace)}/verdict`, { body: { good } }),
  /** An example that somebody looked at: approved, or rejected and not learnt again. */
  review: (example: string, good: boolean, database: string) =>
    json<void>(`/v1/examples/${id(example)}/verdict${query({ database })}`, { body: { good } }),
  remove: (example: string, database: string) => api.removeExample(example, database),
  add: (question: string, sql: string, database: string, shared: boolean) => api.addExample({ question, sql, database, shared }),
};
