import { useState } from "preact/hooks";
import { api, type Event } from "../api";
import { useLoaded } from "../loaded";
import { strings } from "../strings";
import type { Past } from "./requests";

const words = strings.operations;
const tones: Record<string, string> = { answered: "good", chat: "good", ask_user: "warn", gave_up: "bad", failed: "bad", abstained: "warn", refused: "warn", drafted: "good" };

/** The last questions of everyone, and every step of one of them. */
export function Traces({ past, trouble, loading }: { past: Past[]; trouble: string; loading: boolean }) {
  const [typed, setTyped] = useState("");
  const [open, setOpen] = useState("");
  const wanted = typed.toLowerCase();
  const found = past.filter((one) => `${one.question} ${one.user} ${one.database} ${one.status}`.toLowerCase().includes(wanted));
  return (
    <section class="stack" aria-labelledby="operations-traces">
      <h2 id="operations-traces">{words.traces}</h2>
      {trouble && (
        <p class="notice bad" role="alert">
          {trouble}
        </p>
      )}
      <label class="row">
        <span class="small">{words.search}</span>
        <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </label>
      <p class="small quiet" role="status">
        {loading && past.length === 0 ? strings.app.loading : words.traceCount(found.length)}
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
              <span class={`tag ${tones[one.status] ?? ""}`}>{words.statuses[one.status as keyof typeof words.statuses] ?? one.status}</span>
            </button>
            <p class="small quiet">
              {words.trace(
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
  const { value, trouble, loading } = useLoaded(() => api.trace(trace), [trace]);
  if (trouble) {
    return (
      <p class="notice bad" role="alert">
        {trouble}
      </p>
    );
  }
  if (loading || !value) return <p class="quiet">{strings.app.loading}</p>;
  // Pieces of text are all in the draft that follows them.
  const steps = value.filter((event) => event.event !== "text");
  return (
    <ol class="operations-steps">
      {steps.map((event, index) => (
        <li key={index}>
          <details>
            <summary>
              <span class="tag">{words.events[event.event] ?? event.event}</span> <span class="operations-gist">{gist(event)}</span>
            </summary>
            <pre class="operations-event" tabIndex={0}>{JSON.stringify(event, null, 2)}</pre>
          </details>
        </li>
      ))}
    </ol>
  );
}

/** What a step was about, in one line. */
export function gist(event: Event): string {
  switch (event.event) {
    case "started":
      return `${event.database}, ${event.model}`;
    case "stage":
      return event.stage.replaceAll("_", " ");
    case "linked":
      return event.tables.join(", ");
    case "recalled":
      return event.trouble ?? event.examples.map((example) => example.question).join("; ");
    case "reviewed":
      return event.findings.length === 0 ? event.sql : event.findings.map((finding) => finding.message).join("; ");
    case "drafted":
      return event.text;
    case "mended":
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
