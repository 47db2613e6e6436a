import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { summarizeRows } from "../result/summary";
import { navigationState } from "../routes";
import { database } from "../session";
import { strings } from "../strings";
import { Composer } from "./composer";
import { ask, draft, running, turns } from "./conversation";
import { History } from "./history";
import { TurnView } from "./turn";

const labels = strings.ask;

/** View for asking questions. */
export function Ask() {
  const [open, setOpen] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const count = turns.value.length;
  useEffect(() => {
    const state = navigationState.value;
    if (!state) return;
    if (state.database) database.value = state.database;
    if (state.question) draft.value = state.question;
    navigationState.value = null;
    document.getElementById("question")?.focus();
  }, [navigationState.value]);
  // Scroll a new question to the top, and again once its answer is rendered, unless the user has
  // scrolled in between.
  const busy = running.value !== null;
  const userScrolled = useRef(false);
  useEffect(() => {
    const onUserInput = () => {
      userScrolled.current = true;
    };
    const scrollEvents = ["wheel", "touchmove", "pointerdown"] as const;
    for (const type of scrollEvents) addEventListener(type, onUserInput, { passive: true });
    return () => {
      for (const way of scrollEvents) removeEventListener(way, onUserInput);
    };
  }, []);
  useLayoutEffect(() => {
    if (busy) userScrolled.current = false;
    const last = end.current?.lastElementChild;
    if (count > 0 && !userScrolled.current) last?.scrollIntoView({ block: "start" });
    // Move the focus from the chosen option to the new answer, which is far below it.
    if (busy && running.value?.choice && last instanceof HTMLElement) last.focus({ preventScroll: true });
  }, [count, busy]);
  return (
    <div class={count > 0 ? "ask ask-started" : "ask"}>
      <aside class="ask-side" aria-label={labels.history}>
        <History />
      </aside>
      <div class="ask-main">
        <details class="fold ask-side-small" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{labels.history}</summary>
          {open && <History onChoose={() => setOpen(false)} />}
        </details>
        {count === 0 ? (
          <div class="ask-welcome">
            <h1>{labels.title}</h1>
            <p class="quiet">{labels.about}</p>
          </div>
        ) : (
          <>
            <h1 class="visually-hidden">{labels.conversation}</h1>
            <div ref={end} class="turns">
              {turns.value.map((turn) => (
                <TurnView key={turn.id} turn={turn} />
              ))}
            </div>
          </>
        )}
        <p class="visually-hidden" role="status">
          {statusText()}
        </p>
        <Composer />
        {count === 0 && <Suggestions />}
      </div>
    </div>
  );
}

/** Text of the live region for screen readers. */
function statusText(): string {
  const turn = running.value;
  if (!turn) {
    const answer = turns.value[turns.value.length - 1]?.run.answer;
    if (answer?.status === "ask_user" || answer?.status === "chat") return answer.text ?? "";
    return answer?.rows ? summarizeRows(answer.rows) : "";
  }
  const step = turn.run.steps[turn.run.steps.length - 1];
  return step ? labels.running[step.kind] : labels.running.start;
}

function Suggestions() {
  const [questions, setQuestions] = useState<string[]>([]);
  const databaseName = database.value;
  useEffect(() => {
    let active = true;
    setQuestions([]);
    if (databaseName) {
      api
        .suggestions(databaseName)
        .catch(() => api.schema(databaseName).then(({ tables }) => tables.slice(0, 4).map((table) => labels.countOf(table.name))))
        .then(
          (found) => active && setQuestions(found.slice(0, 8)),
          () => undefined,
        );
    }
    return () => {
      active = false;
    };
  }, [databaseName]);
  if (questions.length === 0) return null;
  return (
    <section class="suggestions" aria-label={labels.suggestions}>
      <h2 class="small quiet">{labels.suggestions}</h2>
      <ul class="row">
        {questions.map((question) => (
          <li key={question}>
            <button type="button" class="chip" onClick={() => void ask(question)}>
              {question}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
