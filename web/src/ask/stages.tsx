import { duration } from "../duration";
import { formatNumber } from "../result/text";
import { strings } from "../strings";
import { tokenize } from "../trust/tokens";
import { highlightTokens } from "../trust/sql-view";
import { InlineCode } from "../trust/inline-code";
import { stripFence, type Run, type Step } from "./run";

const labels = strings.ask;
/** Maximum number of draft lines shown while streaming. */
const maxDraftLines = 12;

/** Steps of a run, with the current one highlighted. */
export function Stages({ run, live }: { run: Run; live: boolean }) {
  return (
    <ol class="stages small" aria-label={labels.stages}>
      {run.steps.map((step, i) => (
        <StepView key={i} step={step} live={live && step.endedAt === null} dialect={run.dialect} />
      ))}
      {live && run.steps.length === 0 && (
        <li class="stage-now">
          <span class="stage-mark" aria-hidden="true" />
          {labels.running.start}
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
          <strong>{live ? labels.running[step.kind] : bad && step.kind === "run" ? labels.refused : labels.done[step.kind]}</strong>
          {step.attempt > 1 && <span class="quiet"> · {labels.attempt(step.attempt)}</span>}
        </p>
        <StepResult step={step} />
        {live && step.kind === "draft" && step.text && <Draft text={step.text} dialect={dialect} />}
      </div>
    </li>
  );
}

/** One-line result of a step. */
function StepResult({ step }: { step: Step }) {
  switch (step.kind) {
    case "link":
      return step.tables ? <p class="quiet breaks">{labels.linkedTables(step.tables.length, step.of ?? 0, joinShort(step.tables))}</p> : null;
    case "recall":
      if (step.error) return <p class="quiet breaks">{step.error}</p>;
      if (step.exactMatch) return <p class="quiet">{labels.exactMatch}</p>;
      return step.examples === undefined ? null : <p class="quiet">{labels.retrievedExamples(step.examples)}</p>;
    case "draft":
      return step.agree ? <p class="quiet">{labels.agree(...step.agree)}</p> : null;
    case "check": {
      if (!step.findings) return null;
      // Findings of severity `info` concern the text around the query, not the query.
      const reported = step.findings.filter((finding) => finding.severity !== "info");
      if (reported.length === 0) return <p class="quiet">{step.approved === false ? labels.notAllowed : labels.noFindings}</p>;
      return (
        <ul class="quiet">
          {reported.slice(0, 4).map((finding, i) => (
            <li key={i} class="breaks">
              <InlineCode text={finding.message} />
            </li>
          ))}
        </ul>
      );
    }
    case "repair":
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
      return <p class="quiet">{(step.truncated ? labels.ranTruncated : labels.ran)(formatNumber(step.rows), duration(step.ms ?? 0))}</p>;
    case "retry":
      return <p class="quiet breaks">{labels.strategy(step.strategy ?? "")}</p>;
    case "fallback":
      return <p class="quiet breaks">{joinShort(step.tables ?? [])}</p>;
  }
}

function joinShort(names: readonly string[]): string {
  return names.length > 8 ? `${names.slice(0, 8).join(", ")}, …` : names.join(", ");
}

function Draft({ text, dialect }: { text: string; dialect: string }) {
  const shown = stripFence(text).split("\n").slice(-maxDraftLines).join("\n");
  return (
    <pre class="sql">
      <code>{highlightTokens(tokenize(shown, dialect))}</code>
    </pre>
  );
}
