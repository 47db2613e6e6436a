import { batch, computed, signal } from "@preact/signals";
import { api, type ClarificationChoice, type Session, type RunEvent, type ProblemDetails } from "../api";
import { serverUnreachable, database } from "../session";
import { isAbortError, toProblem } from "../error-box";
import { emptyRun, applyEvent, type Run } from "./run";

/** A question of the conversation and its state. */
export interface Turn {
  id: number;
  question: string;
  database: string;
  /** Interpretation chosen in reply to a clarifying question. */
  choice?: ClarificationChoice;
  /** `past` turns come from the history; their run is fetched on demand. */
  state: "running" | "done" | "cancelled" | "failed" | "past";
  run: Run;
  problem: ProblemDetails | null;
  startedAt: number;
  durationMs: number | null;
  traceId?: string;
}

export const turns = signal<Turn[]>([]);
export const sessionId = signal<string | null>(null);
export const history = signal<Session[]>([]);
/** Text of the question box, preserved while other views are open. */
export const draft = signal("");
export const running = computed(() => turns.value.find((turn) => turn.state === "running") ?? null);

let lastTurnId = 0;
let abortController: AbortController | null = null;

function updateTurn(id: number, how: (turn: Turn) => Turn): void {
  turns.value = turns.value.map((turn) => (turn.id === id ? how(turn) : turn));
}

function newTurn(question: string, databaseName: string, state: Turn["state"]): Turn {
  return { id: ++lastTurnId, question, database: databaseName, state, run: emptyRun, problem: null, startedAt: Date.now(), durationMs: null };
}

/** Asks a question in the current conversation, or in a new one. */
export async function ask(
  question: string,
  { fresh = false, choice }: { fresh?: boolean; choice?: ClarificationChoice | undefined } = {},
): Promise<void> {
  const text = question.trim();
  if (!text || running.value) return;
  const databaseName = database.value;
  const turn: Turn = { ...newTurn(text, databaseName, "running"), ...(choice && { choice }) };
  turns.value = [...turns.value, turn];
  const controller = new AbortController();
  abortController = controller;
  const events = batchEvents((all) =>
    updateTurn(turn.id, (now) => ({ ...now, run: all.reduce((run, event) => applyEvent(run, event, Date.now() - turn.startedAt), now.run) })),
  );
  const end = (state: Turn["state"], problem: ProblemDetails | null) => {
    events.flush();
    updateTurn(turn.id, (now) => ({ ...now, state, problem, durationMs: Date.now() - turn.startedAt }));
  };
  const sendQuestion = async (session: string | null) => {
    const request = { question: text, database: databaseName, ...(fresh && { fresh }), analysis: "browser" as const };
    const reading = choice ? { choice: choice.sql } : { clarify: "ask" as const };
    await api.ask({ ...request, ...reading, ...(session && { session_id: session }) }, events.push, controller.signal);
  };
  try {
    const session = await ensureSession(databaseName);
    try {
      await sendQuestion(session);
    } catch (error) {
      // The server may have deleted the session; retry the question in a new one.
      if (!session || controller.signal.aborted || toProblem(error).code !== "not_found") throw error;
      sessionId.value = null;
      await sendQuestion(await ensureSession(databaseName));
    }
    end("done", null);
  } catch (error) {
    if (controller.signal.aborted || isAbortError(error)) end("cancelled", null);
    else end("failed", toProblem(error));
  }
  if (abortController === controller) abortController = null;
  void loadHistory();
}

/** Asks the question of a turn again, with the interpretation chosen for it. */
export function askAgain({ question, choice }: Turn): void {
  void ask(question, { choice });
}

/** Cancels the running question. The server notices the closed connection. */
export function cancel(): void {
  abortController?.abort();
}

async function ensureSession(of: string): Promise<string | null> {
  if (sessionId.value) return sessionId.value;
  try {
    const created = await api.createSession(of);
    sessionId.value = created.session_id;
    return created.session_id;
  } catch (error) {
    if (serverUnreachable.value) throw error;
    // Without a session the question can be asked, but it has no conversation context.
    return null;
  }
}

/** Batches events, so that a burst of them renders once. */
function batchEvents(onBatch: (events: RunEvent[]) => void): { push: (event: RunEvent) => void; flush: () => void } {
  let waiting: RunEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting;
    waiting = [];
    if (events.length > 0) onBatch(events);
  };
  const push = (event: RunEvent) => {
    waiting.push(event);
    timer ??= setTimeout(flush, 40);
  };
  return { push, flush };
}

/** Leaves the current conversation; the next question starts a new one. */
export function startNewConversation(): void {
  cancel();
  batch(() => {
    turns.value = [];
    sessionId.value = null;
  });
}

export async function loadHistory(): Promise<void> {
  try {
    const all = await api.sessions();
    history.value = all.filter((one) => one.turns.length > 0).sort((a, b) => b.at - a.at);
  } catch {
    // The history is optional: without it the view still works.
  }
}

/** Opens a conversation from the history and shows its last answer. */
export function openConversation(conversation: Session): void {
  cancel();
  const past = conversation.turns.map((one): Turn => ({ ...newTurn(one.question, conversation.database, "past"), traceId: one.trace_id }));
  batch(() => {
    database.value = conversation.database;
    sessionId.value = conversation.session_id;
    turns.value = past;
  });
  const last = past[past.length - 1];
  if (last) void loadPastRun(last);
}

/** Fetches the trace of a past question. */
export async function loadPastRun(turn: Turn): Promise<void> {
  if (!turn.traceId) return;
  try {
    const events = await api.trace(turn.traceId);
    const run = markTruncated(events.reduce((now, event) => applyEvent(now, event, 0), emptyRun));
    updateTurn(turn.id, (now) => ({ ...now, run, state: "done", durationMs: run.answer?.metadata.total_duration_ms ?? null }));
  } catch (error) {
    updateTurn(turn.id, (now) => ({ ...now, problem: toProblem(error), state: "failed" }));
  }
}

/**
 * Marks past answers as truncated: traces store only their first rows, and the rest can be fetched.
 */
function markTruncated(run: Run): Run {
  const { answer } = run;
  const fetchedRows = run.steps.findLast((step) => step.rows !== undefined)?.rows ?? 0;
  if (!answer?.rows || answer.rows.rows.length >= fetchedRows) return run;
  return { ...run, answer: { ...answer, rows: { ...answer.rows, truncated: true } } };
}

export async function deleteConversation(conversation: Session): Promise<void> {
  await api.deleteSession(conversation.session_id);
  if (sessionId.value === conversation.session_id) startNewConversation();
  await loadHistory();
}
