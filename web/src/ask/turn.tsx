import { useEffect, useState } from "preact/hooks";
import { duration } from "../duration";
import { figure } from "../result/text";
import { strings } from "../strings";
import { TroubleNotice } from "../trouble";
import { AnswerView } from "./answer";
import { askAgain, showAgain, type Turn } from "./conversation";
import { Stages } from "./stages";

const words = strings.ask;

/** A question, what is done for it, and the answer. */
export function TurnView({ turn }: { turn: Turn }) {
  const { run, state } = turn;
  const again = () => askAgain(turn);
  const name = turn.choice ? words.questionWithChoice(turn.question, turn.choice.label) : turn.question;
  return (
    <article class={`turn turn-${state}`} aria-label={name} tabIndex={-1}>
      <header class="turn-head">
        <h2 class="breaks">{turn.question}</h2>
        {turn.choice && <p class="small quiet breaks">{words.choice(turn.choice.label)}</p>}
      </header>
      {state === "running" && (
        <div class="turn-running stack">
          <p class="quiet small turn-clock">
            <Clock begun={turn.begun} />
          </p>
          <Stages run={run} live />
        </div>
      )}
      {state === "cancelled" && (
        <div class="stack">
          <p class="notice">{words.cancelled}</p>
          <AskAgain onClick={again} />
        </div>
      )}
      {state === "trouble" && turn.told && <TroubleNotice told={turn.told} retry={again} />}
      {state === "past" && (
        <div class="row">
          <button type="button" onClick={() => void showAgain(turn)}>
            {words.showAgain}
          </button>
        </div>
      )}
      {run.answer && <AnswerView turn={turn} answer={run.answer} />}
      {state !== "running" && run.steps.length > 0 && (
        <details class="fold small">
          <summary>
            {words.stepsTitle(run.steps.length)} <span class="quiet">{summary(turn)}</span>
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
        {words.runAgain}
      </button>
    </div>
  );
}

function summary({ run, took }: Turn): string {
  const cost = run.answer?.cost;
  const parts: string[] = [];
  if (took !== null) parts.push(duration(took));
  if (cost && cost.input_tokens + cost.output_tokens > 0) parts.push(strings.trust.cost(figure(cost.input_tokens), figure(cost.output_tokens)));
  if (cost?.usd) parts.push(strings.trust.usd(cost.usd.toFixed(4)));
  return parts.join(" · ");
}

/** The time since the question was asked. Screen readers are told the stages, not each tenth of a second. */
function Clock({ begun }: { begun: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const clock = setInterval(() => setNow(Date.now()), 100);
    return () => clearInterval(clock);
  }, []);
  return (
    <time role="timer" aria-live="off">
      {((now - begun) / 1000).toFixed(1)} s
    </time>
  );
}
