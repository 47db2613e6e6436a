import { useMemo } from "preact/hooks";
import type { Analysis as Plan } from "../api";
import { ResultView } from "../result";
import { strings } from "../strings";
import "./analysis.css";
import { chartFor } from "./chart";
import { limits } from "./limits";
import { analyse, type Run } from "./run";

const words = strings.analysis;

/** The answer that is computed here, in the browser, after the attempts are spent. */
export function Analysis({ plan, database, question }: { plan: Plan; database: string; question: string }) {
  const running = useMemo(() => analyse(plan, database), [plan, database]);
  const run = running.run.value;
  const over = run.step === "done" || run.step === "failed" || run.step === "stopped";
  const missing = run.arrived.filter((table) => table.truncated).map((table) => table.name);
  return (
    <section class="analysis stack" aria-label={words.title}>
      <header class="row">
        <h2>{words.title}</h2>
        <span class="tag warn">{words.lessSure}</span>
        {!over && (
          <button type="button" class="analysis-stop" onClick={running.stop}>
            {words.stop}
          </button>
        )}
      </header>
      <p class="small quiet">{words.about}</p>
      <p role="status" class={run.step === "failed" ? "notice bad" : run.step === "done" ? "unseen" : "notice"}>
        {!over && <span class="analysis-busy" aria-hidden="true" />}
        {words.steps[run.step]}
        {run.step === "failed" && `: ${run.why}`}
      </p>
      {run.rows && missing.length > 0 && <p class="notice warn">{words.missing(missing.join(", "))}</p>}
      {run.rows && <ResultView rows={run.rows} chart={chartFor(run.rows)} />}
      {run.printed && (
        <details class="fold">
          <summary>{words.printed}</summary>
          <pre class="analysis-code">{run.printed}</pre>
        </details>
      )}
      <details class="fold" open={run.step === "failed"}>
        <summary>{words.how}</summary>
        <div class="stack">
          <p class="small quiet">{words.forQuestion(question)}</p>
          <h3>{words.rows}</h3>
          <ul class="analysis-tables">
            {plan.tables.map((table, index) => (
              <li key={table.name} class="stack">
                <span class="row">
                  <code>{table.name}</code>
                  <span class="small quiet">{progress(run, table.name, index)}</span>
                </span>
                <pre class="analysis-code">{table.sql}</pre>
              </li>
            ))}
          </ul>
          <h3>{words.code}</h3>
          <pre class="analysis-code" tabIndex={0} aria-label={words.code}>
            {plan.code}
          </pre>
          <p class="small quiet">{words.bounds(limits.runMs / 1000, limits.memory / 1_048_576, limits.rows)}</p>
        </div>
      </details>
    </section>
  );
}

function progress(run: Run, name: string, index: number): string {
  const arrived = run.arrived.find((table) => table.name === name);
  if (arrived) return arrived.truncated ? words.cut(arrived.rows) : words.count(arrived.rows);
  return run.fetched > index ? words.here : words.notYet;
}
