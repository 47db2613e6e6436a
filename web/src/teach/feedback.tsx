import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { errorMessage } from "../resource";
import { strings } from "../strings";
import { ExampleForm } from "./form";
import { feedbackApi } from "./requests";
import "./teach.css";

const labels = strings.teach;

interface Feedback {
  good: boolean | null;
  /** Id of the example created from the answer. */
  example: string | null;
}

/** Feedback given since the page was loaded, by trace id. */
const feedbackByTrace = signal<Record<string, Feedback>>({});

/**
 * Feedback buttons of an answer: a correct one is saved as an example, a wrong one can be
 * corrected.
 */
export function FeedbackBar({ traceId, question, sql, database }: { traceId: string; question: string; sql: string; database: string }) {
  const feedback = feedbackByTrace.value[traceId] ?? { good: null, example: null };
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [correcting, setCorrecting] = useState(false);
  const setFeedback = (next: Feedback) => {
    feedbackByTrace.value = { ...feedbackByTrace.value, [traceId]: next };
  };

  async function perform(action: () => Promise<void>): Promise<void> {
    setBusy(true);
    setError("");
    try {
      await action();
    } catch (error) {
      setError(errorMessage(error));
    }
    setBusy(false);
  }

  const sendFeedback = (good: boolean) =>
    perform(async () => {
      const { example_id } = await feedbackApi.rateAnswer(traceId, good);
      setFeedback({ good, example: good ? example_id : null });
      setCorrecting(!good && sql !== "");
    });

  const unsave = () =>
    perform(async () => {
      if (feedback.example) await feedbackApi.remove(feedback.example, database);
      setFeedback({ good: null, example: null });
    });

  return (
    <div class="feedback stack">
      <div class="row" role="group" aria-label={labels.isItRight}>
        <span class="small quiet" aria-hidden="true">
          {labels.isItRight}
        </span>
        <button type="button" aria-pressed={feedback.good === true} disabled={busy} onClick={() => void sendFeedback(true)}>
          <Thumb down={false} /> {labels.right}
        </button>
        <button type="button" aria-pressed={feedback.good === false} disabled={busy} onClick={() => void sendFeedback(false)}>
          <Thumb down={true} /> {labels.wrong}
        </button>
        <span role="status" class="small">
          {feedback.example ? labels.saved : feedback.good === false ? labels.rejected : feedback.good ? labels.thanks : ""}
        </span>
        {feedback.example && (
          <button type="button" class="plain" disabled={busy} onClick={() => void unsave()}>
            {labels.unsave}
          </button>
        )}
        {!correcting && feedback.good === false && sql && (
          <button type="button" class="plain" onClick={() => setCorrecting(true)}>
            {labels.correct}
          </button>
        )}
      </div>
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      {correcting && (
        <ExampleForm
          title={labels.correct}
          question={question}
          sql={sql}
          fixedQuestion
          save={async (_, corrected, shared) => {
            const example = await feedbackApi.add(question, corrected, database, shared);
            setFeedback({ good: false, example: example.id });
          }}
          close={() => setCorrecting(false)}
        />
      )}
    </div>
  );
}

function Thumb({ down }: { down: boolean }) {
  return (
    <svg class={down ? "thumb down" : "thumb"} viewBox="0 0 20 20" width="16" height="16" aria-hidden="true">
      <path d="M3 9h3v8H3zM8 9l3-6c1.4 0 2 .9 2 2l-.5 3H17a1.5 1.5 0 0 1 1.5 1.8l-1.2 5.7A2 2 0 0 1 15.3 17H10l-2-1z" />
    </svg>
  );
}
