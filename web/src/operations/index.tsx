import { useEffect, useState } from "preact/hooks";
import type { TraceSummary } from "../api";
import { useResource } from "../resource";
import { isAdmin } from "../session";
import { strings } from "../strings";
import { Breakers } from "./breakers";
import { attemptCounts, outcomes, costByModel } from "./metrics";
import "./operations.css";
import { sumByLabel, type Sample } from "./prometheus";
import { operationsApi } from "./requests";
import { Traces } from "./traces";

const labels = strings.operations;
const refreshMs = 15_000;
const maxTraces = 200;

/** Dashboard of the server. Administrators only; the server enforces this as well. */
export function Operations() {
  return isAdmin.value ? <Dashboard /> : <p class="notice">{labels.onlyAdministrators}</p>;
}

function Dashboard() {
  const breakers = useResource(operationsApi.breakers, []);
  const metrics = useResource(operationsApi.metrics, []);
  const traces = useResource(() => operationsApi.traces(maxTraces), []);
  const [autoRefresh, setAutoRefresh] = useState(false);
  const reloadAll = () => [breakers, metrics, traces].forEach((one) => one.reload());
  useEffect(() => {
    if (!autoRefresh) return;
    const timer = setInterval(reloadAll, refreshMs);
    return () => clearInterval(timer);
  }, [autoRefresh]);

  const error = breakers.error || metrics.error;
  return (
    <div class="operations stack">
      <header class="row">
        <h1>{labels.title}</h1>
        <span class="row operations-tools">
          <label class="row">
            <input type="checkbox" checked={autoRefresh} onChange={(event) => setAutoRefresh(event.currentTarget.checked)} />
            {labels.autoRefresh(refreshMs / 1000)}
          </label>
          <button type="button" onClick={reloadAll}>
            {labels.refresh}
          </button>
        </span>
      </header>
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      {metrics.value && <Outcomes samples={metrics.value} traces={traces.value ?? []} />}
      {breakers.value && <Breakers breakers={breakers.value} reload={breakers.reload} />}
      {metrics.value && <Breakdown title={labels.errors} none={labels.noErrors} parts={sumByLabel(metrics.value, "querymend_errors_total", "error_type")} />}
      {metrics.value && <ModelCosts samples={metrics.value} />}
      <Traces traces={traces.value ?? []} error={traces.error} loading={traces.loading} />
    </div>
  );
}

function Outcomes({ samples, traces }: { samples: Sample[]; traces: TraceSummary[] }) {
  const totals = outcomes(samples);
  const recent = attemptCounts(traces);
  const share = (part: number, whole: number) => (whole > 0 ? labels.share(part / whole) : "");
  const recentTotal = recent.first + recent.corrected + recent.failed;
  return (
    <section class="stack" aria-labelledby="operations-questions">
      <h2 id="operations-questions">{labels.questions}</h2>
      <dl class="operations-stats">
        <Stat name={labels.asked} value={totals.asked} />
        <Stat name={labels.answered} value={totals.answered} note={share(totals.answered, totals.asked)} />
        <Stat name={labels.failed} value={totals.failed} note={share(totals.failed, totals.asked)} />
        <Stat name={labels.fromMemory} value={totals.fromMemory} />
        <Stat name={labels.corrections} value={totals.corrections} note={labels.ranAfterwards(totals.successful)} />
        <Stat name={labels.median} value={seconds(totals.median)} note={labels.p95(seconds(totals.p95))} />
      </dl>
      {recentTotal > 0 && (
        <>
          <h3>{labels.recent(recentTotal)}</h3>
          <dl class="operations-stats">
            <Stat name={labels.firstDraft} value={recent.first} note={share(recent.first, recentTotal)} />
            <Stat name={labels.afterCorrection} value={recent.corrected} note={share(recent.corrected, recentTotal)} />
            <Stat name={labels.notAnswered} value={recent.failed} note={share(recent.failed, recentTotal)} />
          </dl>
        </>
      )}
    </section>
  );
}

function Stat({ name, value, note }: { name: string; value: number | string; note?: string }) {
  return (
    <div class="card">
      <dt class="small quiet">{name}</dt>
      <dd class="operations-stat">{typeof value === "number" ? value.toLocaleString("en") : value}</dd>
      {note && <dd class="small quiet">{note}</dd>}
    </div>
  );
}

function Breakdown({ title, none, parts }: { title: string; none: string; parts: [string, number][] }) {
  const max = Math.max(1, ...parts.map(([, count]) => count));
  return (
    <section class="stack" aria-label={title}>
      <h2>{title}</h2>
      {parts.length === 0 && <p class="quiet">{none}</p>}
      {parts.length > 0 && (
        <table class="operations-table operations-parts">
          <tbody>
            {parts.map(([name, count]) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td class="number">{count.toLocaleString("en")}</td>
                <td aria-hidden="true">
                  <span class="operations-bar" style={{ width: `${(100 * count) / max}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function ModelCosts({ samples }: { samples: Sample[] }) {
  const models = costByModel(samples);
  return (
    <section class="stack" aria-label={labels.cost}>
      <h2>{labels.cost}</h2>
      {models.length === 0 && <p class="quiet">{labels.noCost}</p>}
      {models.length > 0 && (
        <div class="operations-scroll" tabIndex={0} role="group" aria-label={labels.cost}>
          <table class="operations-table">
            <thead>
              <tr>
                <th scope="col">{labels.model}</th>
                <th scope="col" class="number">
                  {labels.tokensRead}
                </th>
                <th scope="col" class="number">
                  {labels.tokensWritten}
                </th>
                <th scope="col" class="number">
                  {labels.usd}
                </th>
              </tr>
            </thead>
            <tbody>
              {models.map((one) => (
                <tr key={one.model}>
                  <th scope="row">{one.model}</th>
                  <td class="number">{one.input.toLocaleString("en")}</td>
                  <td class="number">{one.output.toLocaleString("en")}</td>
                  <td class="number">{one.usd === null ? labels.unknownPrice : one.usd.toFixed(4)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function seconds(value: number | null): string {
  if (value === null) return "–";
  if (value === Infinity) return labels.overOneMinute;
  return value < 1 ? `${value * 1000} ms` : `${value} s`;
}
