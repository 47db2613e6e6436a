import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { inWords } from "../result/words";
import { handed } from "../routes";
import { database } from "../session";
import { strings } from "../strings";
import { Composer } from "./composer";
import { ask, draft, running, turns } from "./conversation";
import { History } from "./history";
import { TurnView } from "./turn";

const words = strings.ask;

/** Ask, and see what comes. */
export function Ask() {
  const [open, setOpen] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const count = turns.value.length;
  useEffect(() => {
    const hand = handed.value;
    if (!hand) return;
    if (hand.database) database.value = hand.database;
    if (hand.question) draft.value = hand.question;
    handed.value = null;
    document.getElementById("question")?.focus();
  }, [handed.value]);
  // A new question is brought to the top of the screen, and once more when its answer has made room for that; but never away from
  // where somebody went meanwhile.
  const busy = running.value !== null;
  const moved = useRef(false);
  useEffect(() => {
    const note = () => {
      moved.current = true;
    };
    const ways = ["wheel", "touchmove", "pointerdown"] as const;
    for (const way of ways) addEventListener(way, note, { passive: true });
    return () => {
      for (const way of ways) removeEventListener(way, note);
    };
  }, []);
  useLayoutEffect(() => {
    if (busy) moved.current = false;
    const last = end.current?.lastElementChild;
    if (count > 0 && !moved.current) last?.scrollIntoView({ block: "start" });
    // The option that was chosen is far above the answer: the focus follows to where the keyboard is needed next.
    if (busy && running.value?.choice && last instanceof HTMLElement) last.focus({ preventScroll: true });
  }, [count, busy]);
  return (
    <div class={count > 0 ? "ask ask-begun" : "ask"}>
      <aside class="ask-side" aria-label={words.history}>
        <History />
      </aside>
      <div class="ask-main">
        <details class="fold ask-side-small" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{words.history}</summary>
          {open && <History chosen={() => setOpen(false)} />}
        </details>
        {count === 0 ? (
          <div class="ask-welcome">
            <h1>{words.title}</h1>
            <p class="quiet">{words.about}</p>
          </div>
        ) : (
          <>
            <h1 class="unseen">{words.conversation}</h1>
            <div ref={end} class="turns">
              {turns.value.map((turn) => (
                <TurnView key={turn.id} turn={turn} />
              ))}
            </div>
          </>
        )}
        <p class="unseen" role="status">
          {spoken()}
        </p>
        <Composer />
        {count === 0 && <Suggestions />}
      </div>
    </div>
  );
}

/** What screen readers are told while a question is answered. */
function spoken(): string {
  const turn = running.value;
  if (!turn) {
    const answer = turns.value[turns.value.length - 1]?.run.answer;
    if (answer?.status === "ask_user" || answer?.status === "chat") return answer.text ?? "";
    return answer?.rows ? inWords(answer.rows) : "";
  }
  const step = turn.run.steps[turn.run.steps.length - 1];
  return step ? words.running[step.kind] : words.running.start;
}

function Suggestions() {
  const [questions, setQuestions] = useState<string[]>([]);
  const of = database.value;
  useEffect(() => {
    let here = true;
    setQuestions([]);
    if (of) {
      api
        .suggestions(of)
        .catch(() => api.schema(of).then(({ tables }) => tables.slice(0, 4).map((table) => words.countOf(table.name))))
        .then(
          (found) => here && setQuestions(found.slice(0, 8)),
          () => undefined,
        );
    }
    return () => {
      here = false;
    };
  }, [of]);
  if (questions.length === 0) return null;
  return (
    <section class="suggestions" aria-label={words.suggestions}>
      <h2 class="small quiet">{words.suggestions}</h2>
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
