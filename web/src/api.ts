import type { components } from "./api-types";
import { EventStreamParser } from "./event-stream";
import { parseExactJson } from "./exact-json";
import { serverUnreachable, signInRequired } from "./session";
import { strings } from "./strings";

type Schemas = components["schemas"];
/** Event of the stream in which the server reports the progress of a question. */
export type RunEvent = Schemas["Event"];
export type Answer = Schemas["Answer"];
/** Python program that computes the answer in the browser if no query succeeded. */
export type Program = Schemas["Program"];
export type Stage = Schemas["Stage"];
export type DiffHunk = Schemas["Change"];
export type Finding = Schemas["Finding"];
export type AppliedFix = Schemas["AppliedFix"];
export type Attempt = Schemas["Attempt"];
export type QueryReferences = Schemas["QueryReferences"];
export type DatabaseInfo = Schemas["DatabaseInfo"];
export type Rows = Schemas["Rows"];
export type Cell = Rows["rows"][number][number];
export type Chart = Schemas["Chart"];
export type ChartKind = Schemas["ChartKind"];
export type RunResponse = Schemas["RunResponse"];
export type CheckResponse = Schemas["CheckResponse"];
export type LocatedFinding = Schemas["LocatedFinding"];
export type Fix = Schemas["Fix"];
export type Span = Schemas["Span"];
export type Table = Schemas["Table"];
export type Session = Schemas["Session"];
export type Example = Schemas["Example"];
export type ClarificationChoice = Schemas["Choice"];
export type Clarification = Schemas["Clarification"];
export type EmptyResultReport = Schemas["EmptyResultReport"];
export type ProblemDetails = Schemas["ProblemDetails"];
export type CurrentUser = Schemas["CurrentUser"];
export type Rule = Schemas["Rule"];
export type Breaker = Schemas["Breaker"];
export type TraceSummary = Schemas["TraceSummary"];
/**
 * Makes all fields optional except those named: openapi-typescript
 * generates fields that have a default as required.
 */
type RequestOf<T, K extends keyof T> = Pick<T, K> & Partial<T>;
export type AskRequest = RequestOf<Schemas["AskRequest"], "question">;
export type SqlRequest = RequestOf<Schemas["SqlRequest"], "sql">;

/** Error response of the server. */
export class ApiError extends Error {
  constructor(readonly problem: ProblemDetails) {
    super(problem.detail || problem.title);
  }
}

const credentialKey = "key";

/** API key or token sent with each request. It is stored per tab and never appears in a URL. */
export const credential = {
  get: () => sessionStorage.getItem(credentialKey) ?? "",
  set(value: string) {
    if (value) sessionStorage.setItem(credentialKey, value);
    else sessionStorage.removeItem(credentialKey);
  },
};

export interface RequestOptions {
  method?: "GET" | "POST" | "DELETE";
  body?: unknown;
  accept?: string;
  signal?: AbortSignal;
}

/** Sends a request and returns the response. Throws `ApiError` on failure. */
export async function send(path: string, { method, body, accept, signal }: RequestOptions = {}): Promise<Response> {
  const headers = new Headers({ accept: accept ?? "application/json" });
  if (credential.get()) headers.set("authorization", `Bearer ${credential.get()}`);
  if (body !== undefined) headers.set("content-type", "application/json");
  let response: Response;
  try {
    const init: RequestInit = { method: method ?? (body === undefined ? "GET" : "POST"), headers, cache: "no-store" };
    if (body !== undefined) init.body = JSON.stringify(body);
    if (signal) init.signal = signal;
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    serverUnreachable.value = true;
    throw new ApiError(clientProblem(0, "unavailable", strings.app.unreachable));
  }
  serverUnreachable.value = false;
  if (response.ok) return response;
  if (response.status === 401) signInRequired.value = true;
  throw new ApiError(await readProblem(response));
}

async function readProblem(response: Response): Promise<ProblemDetails> {
  const body: unknown = await response.json().catch(() => null);
  const problem = isProblem(body) ? body : clientProblem(response.status, "internal", response.statusText || String(response.status));
  const wait = Number(response.headers.get("retry-after"));
  return wait > 0 ? { ...problem, retry_after_s: wait } : problem;
}

export function isProblem(value: unknown): value is ProblemDetails {
  return typeof value === "object" && value !== null && "code" in value && "detail" in value;
}

/** Builds problem details for an error that did not come from the server. */
export function clientProblem(status: number, code: ProblemDetails["code"], detail: string): ProblemDetails {
  return { type: "about:blank", title: detail, status, detail, code };
}

async function json<T>(path: string, options?: RequestOptions): Promise<T> {
  const response = await send(path, options);
  return response.status === 204 ? (undefined as T) : (parseExactJson(await response.text()) as T);
}

function queryString(fields: Record<string, string | number | boolean | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined && value !== "") search.set(name, String(value));
  const text = search.toString();
  return text ? `?${text}` : "";
}

/**
 * Asks a question and calls `onEvent` for each event of the stream. Throws `ApiError` if the server
 * rejects the question or the stream ends early.
 */
async function ask(question: AskRequest, onEvent: (event: RunEvent) => void, signal: AbortSignal): Promise<void> {
  const response = await send("/v1/ask", { body: question, accept: "text/event-stream", signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventStreamParser();
  let finished = false;
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) break;
    for (const message of parser.push(chunk.value)) {
      const data = parseExactJson(message.data);
      if (message.event === "problem" && isProblem(data)) throw new ApiError(data);
      finished ||= message.event === "finished";
      onEvent(data as RunEvent);
    }
  }
  if (!finished) throw new ApiError(clientProblem(0, "unavailable", strings.app.streamEnded));
}

const id = encodeURIComponent;

/** All requests to the server. The paths are described in `openapi.json`. */
export const api = {
  ask,
  currentUser: () => json<CurrentUser>("/v1/me"),
  databases: () => json<DatabaseInfo[]>("/v1/databases"),
  schema: (database?: string) => json<{ tables: Table[] }>(`/v1/schema${queryString({ database })}`),
  suggestions: (database?: string) => json<string[]>(`/v1/suggestions${queryString({ database })}`),
  check: (body: SqlRequest, signal?: AbortSignal) => json<CheckResponse>("/v1/check", { body, ...(signal && { signal }) }),
  run: (body: SqlRequest, pageSize?: number, signal?: AbortSignal) =>
    json<RunResponse>(`/v1/run${queryString({ page_size: pageSize })}`, { body, ...(signal && { signal }) }),
  page: (cursor: string, pageSize?: number, signal?: AbortSignal) =>
    json<RunResponse>(`/v1/results/${id(cursor)}${queryString({ page_size: pageSize })}`, { ...(signal && { signal }) }),
  explainEmpty: (body: SqlRequest) => json<EmptyResultReport>("/v1/explain-empty", { body }),
  rules: () => json<Rule[]>("/v1/rules"),
  rule: (code: string) => json<Rule>(`/v1/rules/${id(code)}`),
  examples: (database?: string) => json<Example[]>(`/v1/examples${queryString({ database })}`),
  addExample: (body: { question: string; sql: string; database?: string; shared?: boolean }) => json<Example>("/v1/examples", { body }),
  removeExample: (example: string, database?: string) =>
    json<void>(`/v1/examples/${id(example)}${queryString({ database })}`, { method: "DELETE" }),
  sessions: () => json<Session[]>("/v1/sessions"),
  session: (session: string) => json<Session>(`/v1/sessions/${id(session)}`),
  createSession: (database?: string) => json<Session>("/v1/sessions", { body: database ? { database } : {} }),
  deleteSession: (session: string) => json<void>(`/v1/sessions/${id(session)}`, { method: "DELETE" }),
  trace: (trace: string) => json<RunEvent[]>(`/v1/traces/${id(trace)}`),
};
export { json, queryString };
