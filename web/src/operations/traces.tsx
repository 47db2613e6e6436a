import { useState } from "preact/hooks";
import { api, type RunEvent, type TraceSummary } from "../api";
import { useResource } from "../resource";
import { strings } from "../strings";

const labels = strings.operations;
const tones: Record<string, string> = { answered: "good", chat: "good", ask_user: "warn", gave_up: "bad", failed: "bad", abstained: "warn", refused: "warn", drafted: "good" };

/** Recent questions of all users, each with its events. */
export function Traces({ traces, error, loading }: { traces: TraceSummary[]; error: string; loading: boolean }) {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState("");
  const wanted = typed.toLowerCase();
  const found = traces.filter((one) => `${one.question} ${one.user} ${one.database} ${one.status}`.toLowerCase().includes(wanted));
  return (
    <section class="stack" aria-labelledby="operations-traces">
      <h2 id="operations-traces">{labels.traces}</h2>
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      <label class="row">
        <span class="small">{labels.search}</span>
        <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <p class="small quiet" role="status">
        {loading && traces.length === 0 ? strings.app.loading : labels.traceCount(found.length)}
      </p>
      <ul class="stack">
        {found.map((one) => (
          <li key={one.trace_id} class="card stack operations-trace">
            <button
              type="button"
              class="operations-question"
              aria-expanded={open === one.trace_id}
              onClick={() => setOpen(open === one.trace_id ? "" : one.trace_id)}
            >
              <span>{one.question}</span>
              <span class={`tag ${tones[one.status] ?? ""}`}>{labels.statuses[one.status as keyof typeof labels.statuses] ?? one.status}</span>
            </button>
            <p class="small quiet">
              {labels.trace(
                new Date(one.at * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }),
                one.database,
                one.user,
                one.attempts,
                one.duration_ms,
                one.usd ?? null,
              )}
            </p>
            {open === one.trace_id && <Steps trace={one.trace_id} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Steps({ trace }: { trace: string }) {
  const { value, error, loading } = useResource(() => api.trace(trace), [trace]);
  if (error) {
    return (
      <p class="notice bad" role="alert">
        {error}
      </p>
    );
  }
  if (loading || !value) return <p class="quiet">{strings.app.loading}</p>;
  // Skip text chunks: the draft that follows contains them.
  const steps = value.filter((event) => event.event !== "text");
  return (
    <ol class="operations-steps">
      {steps.map((event, index) => (
        <li key={index}>
          <details>
            <summary>
              <span class="tag">{labels.events[event.event] ?? event.event}</span> <span class="operations-summary">{eventSummary(event)}</span>
            </summary>
            <pre class="operations-event" tabIndex={0}>{JSON.stringify(event, null, 2)}</pre>
          </details>
        </li>
      ))}
    </ol>
  );
}

/** One-line summary of an event. */
export function eventSummary(event: RunEvent): string {
  switch (event.event) {
    case "started":
      return `${event.database}, ${event.model}`;
    case "stage":
      return event.stage.replaceAll("_", " ");
    case "schema_linked":
      return event.tables.join(", ");
    case "examples_retrieved":
      return event.trouble ?? event.examples.map((example) => example.question).join("; ");
    case "reviewed":
      return event.findings.length === 0 ? event.sql : event.findings.map((finding) => finding.message).join("; ");
    case "drafted":
      return event.text;
    case "repaired":
      return event.applied.map((fix) => fix.why).join("; ");
    case "executed":
      return event.sql;
    case "rejected":
      return event.error.message;
    case "retrying":
      return event.feedback.map((one) => one.text).join("; ");
    case "finished":
      return event.answer.problem?.message ?? event.answer.text ?? event.answer.sql ?? "";
    default:
      return "";
  }
}
