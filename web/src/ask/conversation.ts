import { batch, computed, signal } from "@preact/signals";
import { api, type Choice, type Conversation, type Event, type Told } from "../api";
import { away, database } from "../session";
import { isAborted, toldOf } from "../trouble";
import { emptyRun, heard, type Run } from "./run";

/** One question of the conversation and how far it has come. */
export interface Turn {
  id: number;
  question: string;
  database: string;
  /** The reading that was chosen when the question had several. */
  choice?: Choice;
  /** `past` turns were asked on another visit; their run is fetched when somebody wants to see it. */
  state: "running" | "done" | "cancelled" | "trouble" | "past";
  run: Run;
  told: Told | null;
  begun: number;
  took: number | null;
  traceId?: string;
}

export const turns = signal<Turn[]>([]);
export const sessionId = signal<string | null>(null);
export const history = signal<Conversation[]>([]);
/** What stands in the question box; kept while other views are looked at. */
export const draft = signal("");
export const running = computed(() => turns.value.find((turn) => turn.state === "running") ?? null);

let count = 0;
let stop: AbortController | null = null;

function change(id: number, how: (turn: Turn) => Turn): void {
  turns.value = turns.value.map((turn) => (turn.id === id ? how(turn) : turn));
}

function newTurn(question: string, of: string, state: Turn["state"]): Turn {
  return { id: ++count, question, database: of, state, run: emptyRun, told: null, begun: Date.now(), took: null };
}

/** Asks a question in the conversation that is open, or begins one with it. */
export async function ask(
  question: string,
  { fresh = false, choice }: { fresh?: boolean; choice?: Choice | undefined } = {},
): Promise<void> {
  const text = question.trim();
  if (!text || running.value) return;
  const of = database.value;
  const turn: Turn = { ...newTurn(text, of, "running"), ...(choice && { choice }) };
  turns.value = [...turns.value, turn];
  const mine = new AbortController();
  stop = mine;
  const events = queue((all) =>
    change(turn.id, (now) => ({ ...now, run: all.reduce((run, event) => heard(run, event, Date.now() - turn.begun), now.run) })),
  );
  const end = (state: Turn["state"], told: Told | null) => {
    events.flush();
    change(turn.id, (now) => ({ ...now, state, told, took: Date.now() - turn.begun }));
  };
  const put = async (session: string | null) => {
    const about = { question: text, database: of, ...(fresh && { fresh }), analysis: "browser" as const };
    const reading = choice ? { choice: choice.sql } : { clarify: "ask" as const };
    await api.ask({ ...about, ...reading, ...(session && { session_id: session }) }, events.push, mine.signal);
  };
  try {
    const session = await sessionOf(of);
    try {
      await put(session);
    } catch (error) {
      // The server may have forgotten the conversation meanwhile; the question is still worth an answer.
      if (!session || mine.signal.aborted || toldOf(error).code !== "not_found") throw error;
      sessionId.value = null;
      await put(await sessionOf(of));
    }
    end("done", null);
  } catch (error) {
    if (mine.signal.aborted || isAborted(error)) end("cancelled", null);
    else end("trouble", toldOf(error));
  }
  if (stop === mine) stop = null;
  void loadHistory();
}

/** Asks the question of a turn once more, with the reading that was chosen for it. */
export function askAgain({ question, choice }: Turn): void {
  void ask(question, { choice });
}

/** Stops the question that is being answered; the server hears of it by the connection that is closed. */
export function cancel(): void {
  stop?.abort();
}

async function sessionOf(of: string): Promise<string | null> {
  if (sessionId.value) return sessionId.value;
  try {
    const begun = await api.beginConversation(of);
    sessionId.value = begun.session_id;
    return begun.session_id;
  } catch (error) {
    if (away.value) throw error;
    // Without a conversation the question can still be asked; it just cannot refer to others.
    return null;
  }
}

/** Events come in bursts, many for one picture on the screen; they are taken on together. */
function queue(take: (events: Event[]) => void): { push: (event: Event) => void; flush: () => void } {
  let waiting: Event[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const events = waiting;
    waiting = [];
    if (events.length > 0) take(events);
  };
  const push = (event: Event) => {
    waiting.push(event);
    timer ??= setTimeout(flush, 40);
  };
  return { push, flush };
}

/** Leaves this conversation and begins another with the next question. */
export function startOver(): void {
  cancel();
  batch(() => {
    turns.value = [];
    sessionId.value = null;
  });
}

export async function loadHistory(): Promise<void> {
  try {
    const all = await api.conversations();
    history.value = all.filter((one) => one.turns.length > 0).sort((a, b) => b.at - a.at);
  } catch {
    // The list is a convenience; where it cannot be had the view works without it.
  }
}

/** Goes on with a conversation of before. Its last answer is shown as it was. */
export function openConversation(conversation: Conversation): void {
  cancel();
  const past = conversation.turns.map((one): Turn => ({ ...newTurn(one.question, conversation.database, "past"), traceId: one.trace_id }));
  batch(() => {
    database.value = conversation.database;
    sessionId.value = conversation.session_id;
    turns.value = past;
  });
  const last = past[past.length - 1];
  if (last) void showAgain(last);
}

/** Fetches what happened for a question of before. */
export async function showAgain(turn: Turn): Promise<void> {
  if (!turn.traceId) return;
  try {
    const events = await api.trace(turn.traceId);
    const run = asKept(events.reduce((now, event) => heard(now, event, 0), emptyRun));
    change(turn.id, (now) => ({ ...now, run, state: "done", took: run.answer?.metadata.total_duration_ms ?? null }));
  } catch (error) {
    change(turn.id, (now) => ({ ...now, told: toldOf(error), state: "trouble" }));
  }
}

/** Of past answers only the first rows are kept. That is said, and all of them can be fetched, as where rows were cut off. */
function asKept(run: Run): Run {
  const { answer } = run;
  const found = run.steps.findLast((step) => step.rows !== undefined)?.rows ?? 0;
  if (!answer?.rows || answer.rows.rows.length >= found) return run;
  return { ...run, answer: { ...answer, rows: { ...answer.rows, truncated: true } } };
}

export async function forget(conversation: Conversation): Promise<void> {
  await api.forgetConversation(conversation.session_id);
  if (sessionId.value === conversation.session_id) startOver();
  await loadHistory();
}
