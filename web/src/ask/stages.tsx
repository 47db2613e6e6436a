import { duration } from "../duration";
import { figure } from "../result/text";
import { strings } from "../strings";
import { tokens } from "../trust/tokens";
import { colouredTokens } from "../trust/sql-view";
import { Words } from "../trust/words";
import { draftShown, type Run, type Step } from "./run";

const words = strings.ask;
/** As many lines of a draft are shown while it is written. */
const draftLines = 12;

/** What has been done for a question so far, and what is being done just now. */
export function Stages({ run, live }: { run: Run; live: boolean }) {
  return (
    <ol class="stages small" aria-label={words.stages}>
      {run.steps.map((step, i) => (
        <StepView key={i} step={step} live={live && step.ended === null} dialect={run.dialect} />
      ))}
      {live && run.steps.length === 0 && (
        <li class="stage-now">
          <span class="stage-mark" aria-hidden="true" />
          {words.running.start}
        </li>
      )}
    </ol>
  );
}

function StepView({ step, live, dialect }: { step: Step; live: boolean; dialect: string }) {
  const bad = step.kind === "run" ? step.error !== undefined : step.kind === "check" && step.approved === false;
  return (
    <li class={live ? "stage-now" : bad ? "stage-bad" : "stage-done"}>
      <span class="stage-mark" aria-hidden="true" />
      <div class="stage-text">
        <p>
          <strong>{live ? words.running[step.kind] : bad && step.kind === "run" ? words.refused : words.done[step.kind]}</strong>
          {step.attempt > 1 && <span class="quiet"> · {words.attempt(step.attempt)}</span>}
        </p>
        <Found step={step} />
        {live && step.kind === "draft" && step.text && <Draft text={step.text} dialect={dialect} />}
      </div>
    </li>
  );
}

/** What a step found, in a line or two. */
function Found({ step }: { step: Step }) {
  switch (step.kind) {
    case "link":
      return step.tables ? <p class="quiet breaks">{words.linked(step.tables.length, step.of ?? 0, brief(step.tables))}</p> : null;
    case "recall":
      if (step.error) return <p class="quiet breaks">{step.error}</p>;
      if (step.known) return <p class="quiet">{words.known}</p>;
      return step.examples === undefined ? null : <p class="quiet">{words.recalled(step.examples)}</p>;
    case "draft":
      return step.agree ? <p class="quiet">{words.agree(...step.agree)}</p> : null;
    case "check": {
      if (!step.findings) return null;
      // What was wrapped around the query says nothing about the query.
      const told = step.findings.filter((finding) => finding.severity !== "info");
      if (told.length === 0) return <p class="quiet">{step.approved === false ? words.notSent : words.noFindings}</p>;
      return (
        <ul class="quiet">
          {told.slice(0, 4).map((finding, i) => (
            <li key={i} class="breaks">
              <Words text={finding.message} />
            </li>
          ))}
        </ul>
      );
    }
    case "mend":
      return (
        <>
          {step.changes?.slice(0, 5).map((change, i) => (
            <p key={i} class="diff mono breaks">
              {change.before && <del>{change.before}</del>} {change.after && <ins>{change.after}</ins>}
            </p>
          ))}
        </>
      );
    case "run":
      if (step.error) return <p class="quiet breaks">{step.error}</p>;
      if (step.rows === undefined) return null;
      return <p class="quiet">{(step.truncated ? words.ranMore : words.ran)(figure(step.rows), duration(step.ms ?? 0))}</p>;
    case "retry":
      return <p class="quiet breaks">{words.strategy(step.strategy ?? "")}</p>;
    case "fallback":
      return <p class="quiet breaks">{brief(step.tables ?? [])}</p>;
  }
}

function brief(names: readonly string[]): string {
  return names.length > 8 ? `${names.slice(0, 8).join(", ")}, …` : names.join(", ");
}

function Draft({ text, dialect }: { text: string; dialect: string }) {
  const shown = draftShown(text).split("\n").slice(-draftLines).join("\n");
  return (
    <pre class="sql">
      <code>{colouredTokens(tokens(shown, dialect))}</code>
    </pre>
  );
}
