import type { components } from "./api-types";
import { MessageCutter } from "./event-stream";
import { exactJson } from "./exact-json";
import { away, signInNeeded } from "./session";
import { strings } from "./strings";

type Schemas = components["schemas"];
/** What the server tells while it answers a question. */
export type Event = Schemas["Event"];
export type Answer = Schemas["Answer"];
/** A program that computes the answer here, once no query could be found. */
export type Analysis = Schemas["Program"];
export type Stage = Schemas["Stage"];
export type Change = Schemas["Change"];
export type Finding = Schemas["Finding"];
export type Applied = Schemas["Applied"];
export type Attempt = Schemas["Attempt"];
export type Extracted = Schemas["Extracted"];
export type Listed = Schemas["Listed"];
export type Rows = Schemas["Rows"];
export type Cell = Rows["rows"][number][number];
export type Chart = Schemas["Chart"];
export type ChartKind = Schemas["ChartKind"];
export type Ran = Schemas["RanTold"];
export type Checked = Schemas["Checked"];
export type Placed = Schemas["Placed"];
export type Fix = Schemas["Fix"];
export type Span = Schemas["Span"];
export type Table = Schemas["Table"];
export type Conversation = Schemas["SessionTold"];
export type Example = Schemas["Example"];
export type Choice = Schemas["Choice"];
export type Clarification = Schemas["Clarification"];
export type Emptiness = Schemas["Emptiness"];
export type Told = Schemas["Told"];
export type Me = Schemas["Me"];
export type Rule = Schemas["RuleTold"];
/** What may be left out of a request, is: the description says only what the server puts in its place. */
type Asked<T, Needed extends keyof T> = Pick<T, Needed> & Partial<T>;
export type Question = Asked<Schemas["Question"], "question">;
export type Query = Asked<Schemas["QueryText"], "sql">;

/** Something that the server refused, in its own words. */
export class Trouble extends Error {
  constructor(readonly told: Told) {
    super(told.detail || told.title);
  }
}

const keyPlace = "key";

/** The key or token that is sent along. It lives as long as the tab, and is never part of an address. */
export const key = {
  get: () => sessionStorage.getItem(keyPlace) ?? "",
  set(value: string) {
    if (value) sessionStorage.setItem(keyPlace, value);
    else sessionStorage.removeItem(keyPlace);
  },
};

export interface Call {
  method?: "GET" | "POST" | "DELETE";
  body?: unknown;
  accept?: string;
  signal?: AbortSignal;
}

/** Sends a request and gives the response, or throws `Trouble`. */
export async function send(path: string, { method, body, accept, signal }: Call = {}): Promise<Response> {
  const headers = new Headers({ accept: accept ?? "application/json" });
  if (key.get()) headers.set("authorization", `Bearer ${key.get()}`);
  if (body !== undefined) headers.set("content-type", "application/json");
  let response: Response;
  try {
    const init: RequestInit = { method: method ?? (body === undefined ? "GET" : "POST"), headers, cache: "no-store" };
    if (body !== undefined) init.body = JSON.stringify(body);
    if (signal) init.signal = signal;
    response = await fetch(path, init);
  } catch (error) {
    if (signal?.aborted) throw error;
    away.value = true;
    throw new Trouble(problem(0, "unavailable", strings.app.unreachable));
  }
  away.value = false;
  if (response.ok) return response;
  if (response.status === 401) signInNeeded.value = true;
  throw new Trouble(await toldBy(response));
}

async function toldBy(response: Response): Promise<Told> {
  const told: unknown = await response.json().catch(() => null);
  const told_ = isTold(told) ? told : problem(response.status, "internal", response.statusText || String(response.status));
  const wait = Number(response.headers.get("retry-after"));
  return wait > 0 ? { ...told_, retry_after_s: wait } : told_;
}

export function isTold(value: unknown): value is Told {
  return typeof value === "object" && value !== null && "code" in value && "detail" in value;
}

/** A problem that did not come from the server, in the server's form. */
export function problem(status: number, code: Told["code"], detail: string): Told {
  return { type: "about:blank", title: detail, status, detail, code };
}

async function json<T>(path: string, call?: Call): Promise<T> {
  const response = await send(path, call);
  return response.status === 204 ? (undefined as T) : (exactJson(await response.text()) as T);
}

function query(fields: Record<string, string | number | boolean | undefined>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined && value !== "") search.set(name, String(value));
  const text = search.toString();
  return text ? `?${text}` : "";
}

/** Asks a question and tells every event as it comes. Throws `Trouble` where the question was not taken on. */
async function ask(question: Question, hear: (event: Event) => void, signal: AbortSignal): Promise<void> {
  const response = await send("/v1/ask", { body: question, accept: "text/event-stream", signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const cutter = new MessageCutter();
  let finished = false;
  for (;;) {
    const piece = await reader?.read();
    if (!piece || piece.done) break;
    for (const message of cutter.push(piece.value)) {
      const data = exactJson(message.data);
      if (message.event === "problem" && isTold(data)) throw new Trouble(data);
      finished ||= message.event === "finished";
      hear(data as Event);
    }
  }
  if (!finished) throw new Trouble(problem(0, "unavailable", strings.app.cutOff));
}

const id = encodeURIComponent;

/** Every request that the page makes. Paths are the server's own: see `openapi.json`. */
export const api = {
  ask,
  me: () => json<Me>("/v1/me"),
  databases: () => json<Listed[]>("/v1/databases"),
  schema: (database?: string) => json<{ tables: Table[] }>(`/v1/schema${query({ database })}`),
  suggestions: (database?: string) => json<string[]>(`/v1/suggestions${query({ database })}`),
  check: (body: Query, signal?: AbortSignal) => json<Checked>("/v1/check", { body, ...(signal && { signal }) }),
  run: (body: Query, pageSize?: number, signal?: AbortSignal) =>
    json<Ran>(`/v1/run${query({ page_size: pageSize })}`, { body, ...(signal && { signal }) }),
  page: (cursor: string, pageSize?: number, signal?: AbortSignal) =>
    json<Ran>(`/v1/results/${id(cursor)}${query({ page_size: pageSize })}`, { ...(signal && { signal }) }),
  explainEmpty: (body: Query) => json<Emptiness>("/v1/explain-empty", { body }),
  rules: () => json<Rule[]>("/v1/rules"),
  rule: (code: string) => json<Rule>(`/v1/rules/${id(code)}`),
  examples: (database?: string) => json<Example[]>(`/v1/examples${query({ database })}`),
  addExample: (body: { question: string; sql: string; database?: string; shared?: boolean }) => json<Example>("/v1/examples", { body }),
  removeExample: (example: string, database?: string) =>
    json<void>(`/v1/examples/${id(example)}${query({ database })}`, { method: "DELETE" }),
  conversations: () => json<Conversation[]>("/v1/sessions"),
  conversation: (session: string) => json<Conversation>(`/v1/sessions/${id(session)}`),
  beginConversation: (database?: string) => json<Conversation>("/v1/sessions", { body: database ? { database } : {} }),
  forgetConversation: (session: string) => json<void>(`/v1/sessions/${id(session)}`, { method: "DELETE" }),
  trace: (trace: string) => json<Event[]>(`/v1/traces/${id(trace)}`),
};
export { json, query };
