import { useEffect, useState } from "preact/hooks";
import { type Answer, api, type Emptiness } from "../api";
import { lazy } from "../lazy";
import { ResultView } from "../result";
import { strings } from "../strings";
import { Verdict } from "../teach/verdict";
import { TroubleNotice } from "../trouble";
import { Trust } from "../trust";
import { Confidence } from "../trust/confidence";
import { Timeline } from "../trust/timeline";
import { Clarify } from "./clarify";
import { ask, askAgain, type Turn } from "./conversation";

const words = strings.ask;
const Analysis = lazy(() => import("../analysis").then((view) => view.Analysis));

/** How a question ended, each way in its own form. */
export function AnswerView({ turn, answer }: { turn: Turn; answer: Answer }) {
  return (
    <div class="answer stack">
      <Ending turn={turn} answer={answer} />
      {answer.attempts.length > 0 && <Why turn={turn} answer={answer} />}
    </div>
  );
}

function Ending({ turn, answer }: { turn: Turn; answer: Answer }) {
  const retry = () => askAgain(turn);
  switch (answer.status) {
    case "answered":
      return <Answered turn={turn} answer={answer} />;
    case "chat":
      return <p class="chat-text">{answer.text}</p>;
    case "ask_user":
      return answer.clarification ? <Clarify turn={turn} clarification={answer.clarification} /> : <p class="chat-text">{answer.text}</p>;
    case "gave_up":
      if (answer.analysis) return <Analysis plan={answer.analysis} database={turn.database} question={turn.question} />;
      return (
        <div class="stack">
          <TroubleNotice told={toldIn(answer, words.gaveUp)} retry={retry} />
          <p class="small quiet">{words.gaveUpMore}</p>
        </div>
      );
    case "drafted":
      return <pre class="breaks">{answer.sql}</pre>;
    case "failed":
      return <TroubleNotice told={toldIn(answer, words.gaveUp)} retry={retry} />;
    case "abstained":
    case "refused":
      // The same question would end in the same way.
      return <TroubleNotice told={toldIn(answer, words.gaveUp)} tone="warn" />;
  }
}

function toldIn({ problem, text }: Answer, title: string) {
  const { code = "internal", message = text ?? title, hint, retry_after_s } = problem ?? {};
  return { type: "about:blank", title, status: 0, detail: message, code, hint: hint ?? null, retry_after_s: retry_after_s ?? null };
}

function Answered({ turn, answer }: { turn: Turn; answer: Answer }) {
  const sql = answer.sql ?? "";
  const rows = answer.rows;
  return (
    <>
      <div class="answer-badge">
        <Confidence answer={answer} />
      </div>
      {answer.remembered && (
        <p class="row small quiet">
          {words.remembered}
          <button type="button" class="plain small" onClick={() => void ask(turn.question, { fresh: true })}>
            {words.askFresh}
          </button>
        </p>
      )}
      {rows && (
        <ResultView
          rows={rows}
          chart={answer.chart}
          text={answer.text}
          source={sql && !answer.fallback ? { sql, database: turn.database } : undefined}
        />
      )}
      {rows && rows.rows.length === 0 && sql && <WhyEmpty sql={sql} database={turn.database} />}
      <Verdict traceId={answer.trace_id} question={answer.question} sql={sql} database={turn.database} />
    </>
  );
}

/** A query without rows is explained: which condition, which value leaves nothing. */
function WhyEmpty({ sql, database }: { sql: string; database: string }) {
  const [why, setWhy] = useState<Emptiness | null>(null);
  useEffect(() => {
    let here = true;
    api.explainEmpty({ sql, database }).then(
      (found) => here && setWhy(found),
      () => undefined,
    );
    return () => {
      here = false;
    };
  }, [sql, database]);
  if (!why || (why.conditions.length === 0 && why.absent.length === 0)) return null;
  return (
    <section class="notice stack small">
      <h3>{words.whyEmpty}</h3>
      <ul>
        {why.absent.map((one) => (
          <li key={`${one.table}.${one.column} ${one.value}`} class="breaks">
            {words.absent(one.value, `${one.table}.${one.column}`)} {one.near.length > 0 && words.near(one.near.join(", "))}
          </li>
        ))}
        {why.conditions.map((condition) => (
          <li key={condition} class="breaks">
            {words.without(condition)}
          </li>
        ))}
      </ul>
    </section>
  );
}

const openPlace = "trust-open";

/** The query and everything behind the answer. Whether it is open is remembered: some always want to see it, some never. */
function Why({ turn, answer }: { turn: Turn; answer: Answer }) {
  const [open, setOpen] = useState(!["answered", "ask_user"].includes(answer.status) || localStorage.getItem(openPlace) === "yes");
  return (
    <details
      class="fold why"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now === open) return;
        setOpen(now);
        if (answer.status === "answered") localStorage.setItem(openPlace, now ? "yes" : "no");
      }}
    >
      <summary>{answer.status === "answered" ? words.answered : words.tried}</summary>
      {open &&
        (answer.clarification ? (
          <Timeline answer={answer} steps={turn.run.steps} dialect={turn.run.dialect} />
        ) : (
          <Trust answer={answer} steps={turn.run.steps} database={turn.database} dialect={turn.run.dialect} />
        ))}
    </details>
  );
}
