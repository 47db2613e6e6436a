import { useEffect, useState } from "preact/hooks";
import { duration } from "../duration";
import { formatNumber } from "../result/text";
import { strings } from "../strings";
import { ErrorBox } from "../error-box";
import { AnswerView } from "./answer";
import { askAgain, loadPastRun, type Turn } from "./conversation";
import { Stages } from "./stages";

const labels = strings.ask;

/** A question with its progress and its answer. */
export function TurnView({ turn }: { turn: Turn }) {
  const { run, state } = turn;
  const retry = () => askAgain(turn);
  const name = turn.choice ? labels.questionWithChoice(turn.question, turn.choice.label) : turn.question;
  return (
    <article class={`turn turn-${state}`} aria-label={name} tabIndex={-1}>
      <header class="turn-head">
        <h2 class="breaks">{turn.question}</h2>
        {turn.choice && <p class="small quiet breaks">{labels.choice(turn.choice.label)}</p>}
      </header>
      {state === "running" && (
        <div class="turn-running stack">
          <p class="quiet small turn-clock">
            <Clock startedAt={turn.startedAt} />
          </p>
          <Stages run={run} live />
        </div>
      )}
      {state === "cancelled" && (
        <div class="stack">
          <p class="notice">{labels.cancelled}</p>
          <AskAgain onClick={retry} />
        </div>
      )}
      {state === "failed" && turn.problem && <ErrorBox problem={turn.problem} retry={retry} />}
      {state === "past" && (
        <div class="row">
          <button type="button" onClick={() => void loadPastRun(turn)}>
            {labels.showAnswer}
          </button>
        </div>
      )}
      {run.answer && <AnswerView turn={turn} answer={run.answer} />}
      {state !== "running" && run.steps.length > 0 && (
        <details class="fold small">
          <summary>
            {labels.stepsTitle(run.steps.length)} <span class="quiet">{costSummary(turn)}</span>
          </summary>
          <Stages run={run} live={false} />
          {run.traceId && (
            <p class="quiet">
              {strings.trust.trace} <code class="breaks">{run.traceId}</code>
            </p>
          )}
        </details>
      )}
    </article>
  );
}

function AskAgain({ onClick }: { onClick: () => void }) {
  return (
    <div class="row">
      <button type="button" onClick={onClick}>
        {labels.askAgain}
      </button>
    </div>
  );
}

function costSummary({ run, durationMs }: Turn): string {
  const cost = run.answer?.cost;
  const parts: string[] = [];
  if (durationMs !== null) parts.push(duration(durationMs));
  if (cost && cost.input_tokens + cost.output_tokens > 0) parts.push(strings.trust.cost(formatNumber(cost.input_tokens), formatNumber(cost.output_tokens)));
  if (cost?.usd) parts.push(strings.trust.usd(cost.usd.toFixed(4)));
  return parts.join(" · ");
}

/** Elapsed time. Not announced to screen readers, which get the stages instead. */
function Clock({ startedAt }: { startedAt: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const clock = setInterval(() => setNow(Date.now()), 100);
    return () => clearInterval(clock);
  }, []);
  return (
    <time role="timer" aria-live="off">
      {((now - startedAt) / 1000).toFixed(1)} s
    </time>
  );
}
