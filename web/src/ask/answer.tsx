import { useEffect, useState } from "preact/hooks";
import { type Answer, api, type EmptyResultReport } from "../api";
import { lazy } from "../lazy";
import { ResultView } from "../result";
import { strings } from "../strings";
import { FeedbackBar } from "../teach/feedback";
import { ErrorBox } from "../error-box";
import { Trust } from "../trust";
import { Confidence } from "../trust/confidence";
import { Timeline } from "../trust/timeline";
import { Clarify } from "./clarify";
import { ask, askAgain, type Turn } from "./conversation";

const labels = strings.ask;
const Analysis = lazy(() => import("../analysis").then((view) => view.Analysis));

/** Shows an answer according to its status. */
export function AnswerView({ turn, answer }: { turn: Turn; answer: Answer }) {
  return (
    <div class="answer stack">
      <AnswerBody turn={turn} answer={answer} />
      {answer.attempts.length > 0 && <EvidencePanel turn={turn} answer={answer} />}
    </div>
  );
}

function AnswerBody({ turn, answer }: { turn: Turn; answer: Answer }) {
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
          <ErrorBox problem={answerProblem(answer, labels.gaveUp)} retry={retry} />
          <p class="small quiet">{labels.gaveUpHint}</p>
        </div>
      );
    case "drafted":
      return <pre class="breaks">{answer.sql}</pre>;
    case "failed":
      return <ErrorBox problem={answerProblem(answer, labels.gaveUp)} retry={retry} />;
    case "abstained":
    case "refused":
      // No retry: the same question would get the same answer.
      return <ErrorBox problem={answerProblem(answer, labels.gaveUp)} tone="warn" />;
  }
}

function answerProblem({ problem, text }: Answer, title: string) {
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
          {labels.fromMemory}
          <button type="button" class="plain small" onClick={() => void ask(turn.question, { fresh: true })}>
            {labels.askModel}
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
      {rows && rows.rows.length === 0 && sql && <EmptyResultExplanation sql={sql} database={turn.database} />}
      <FeedbackBar traceId={answer.trace_id} question={answer.question} sql={sql} database={turn.database} />
    </>
  );
}

/** Explains an empty result: which predicates and literals exclude all rows. */
function EmptyResultExplanation({ sql, database }: { sql: string; database: string }) {
  const [report, setReport] = useState<EmptyResultReport | null>(null);
  useEffect(() => {
    let active = true;
    api.explainEmpty({ sql, database }).then(
      (found) => active && setReport(found),
      () => undefined,
    );
    return () => {
      active = false;
    };
  }, [sql, database]);
  if (!report || (report.conditions.length === 0 && report.absent.length === 0)) return null;
  return (
    <section class="notice stack small">
      <h3>{labels.whyEmpty}</h3>
      <ul>
        {report.absent.map((one) => (
          <li key={`${one.table}.${one.column} ${one.value}`} class="breaks">
            {labels.missingValue(one.value, `${one.table}.${one.column}`)} {one.near.length > 0 && labels.similarValues(one.near.join(", "))}
          </li>
        ))}
        {report.conditions.map((condition) => (
          <li key={condition} class="breaks">
            {labels.withoutCondition(condition)}
          </li>
        ))}
      </ul>
    </section>
  );
}

const openStorageKey = "trust-open";

/** Query, findings and attempts of an answer. Remembers whether the panel was open. */
function EvidencePanel({ turn, answer }: { turn: Turn; answer: Answer }) {
  const [open, setOpen] = useState(!["answered", "ask_user"].includes(answer.status) || localStorage.getItem(openStorageKey) === "yes");
  return (
    <details
      class="fold why"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now === open) return;
        setOpen(now);
        if (answer.status === "answered") localStorage.setItem(openStorageKey, now ? "yes" : "no");
      }}
    >
      <summary>{answer.status === "answered" ? labels.answered : labels.attempts}</summary>
      {open &&
        (answer.clarification ? (
          <Timeline answer={answer} steps={turn.run.steps} dialect={turn.run.dialect} />
        ) : (
          <Trust answer={answer} steps={turn.run.steps} database={turn.database} dialect={turn.run.dialect} />
        ))}
    </details>
  );
}
