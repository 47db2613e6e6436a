import { useMemo } from "preact/hooks";
import type { Program as Plan } from "../api";
import { ResultView } from "../result";
import { strings } from "../strings";
import "./analysis.css";
import { chartFor } from "./chart";
import { limits } from "./limits";
import { startAnalysis, type AnalysisState } from "./run";

const labels = strings.analysis;

/** Answer computed in the browser after the attempts of the server have failed. */
export function Analysis({ plan, database, question }: { plan: Plan; database: string; question: string }) {
  const handle = useMemo(() => startAnalysis(plan, database), [plan, database]);
  const state = handle.state.value;
  const isFinished = state.step === "done" || state.step === "failed" || state.step === "stopped";
  const missing = state.loaded.filter((table) => table.truncated).map((table) => table.name);
  return (
    <section class="analysis stack" aria-label={labels.title}>
      <header class="row">
        <h2>{labels.title}</h2>
        <span class="tag warn">{labels.lowerConfidence}</span>
        {!isFinished && (
          <button type="button" class="analysis-stop" onClick={handle.stop}>
            {labels.stop}
          </button>
        )}
      </header>
      <p class="small quiet">{labels.about}</p>
      <p role="status" class={state.step === "failed" ? "notice bad" : state.step === "done" ? "visually-hidden" : "notice"}>
        {!isFinished && <span class="analysis-busy" aria-hidden="true" />}
        {labels.steps[state.step]}
        {state.step === "failed" && `: ${state.reason}`}
      </p>
      {state.rows && missing.length > 0 && <p class="notice warn">{labels.missing(missing.join(", "))}</p>}
      {state.rows && <ResultView rows={state.rows} chart={chartFor(state.rows)} />}
      {state.output && (
        <details class="fold">
          <summary>{labels.output}</summary>
          <pre class="analysis-code">{state.output}</pre>
        </details>
      )}
      <details class="fold" open={state.step === "failed"}>
        <summary>{labels.how}</summary>
        <div class="stack">
          <p class="small quiet">{labels.forQuestion(question)}</p>
          <h3>{labels.rows}</h3>
          <ul class="analysis-tables">
            {plan.tables.map((table, index) => (
              <li key={table.name} class="stack">
                <span class="row">
                  <code>{table.name}</code>
                  <span class="small quiet">{progress(state, table.name, index)}</span>
                </span>
                <pre class="analysis-code">{table.sql}</pre>
              </li>
            ))}
          </ul>
          <h3>{labels.code}</h3>
          <pre class="analysis-code" tabIndex={0} aria-label={labels.code}>
            {plan.code}
          </pre>
          <p class="small quiet">{labels.limits(limits.runMs / 1000, limits.memoryBytes / 1_048_576, limits.rowsPerTable)}</p>
        </div>
      </details>
    </section>
  );
}

function progress(state: AnalysisState, name: string, index: number): string {
  const arrived = state.loaded.find((table) => table.name === name);
  if (arrived) return arrived.truncated ? labels.truncated(arrived.rows) : labels.count(arrived.rows);
  return state.fetchedTables > index ? labels.fetched : labels.notFetched;
}
