import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { wordsOf } from "../loaded";
import { strings } from "../strings";
import { ExampleForm } from "./form";
import { teaching } from "./requests";
import "./teach.css";

const words = strings.teach;

interface Said {
  good: boolean | null;
  /** The example that was made of the answer. */
  example: string | null;
}

/** What was said about each answer since the page was opened, so that it is still there when an answer is shown again. */
const said = signal<Record<string, Said>>({});

/** Thumbs beneath an answer: a right one is saved as an example, a wrong one can be put right. */
export function Verdict({ traceId, question, sql, database }: { traceId: string; question: string; sql: string; database: string }) {
  const now = said.value[traceId] ?? { good: null, example: null };
  const [trouble, setTrouble] = useState("");
  const [busy, setBusy] = useState(false);
  const [correcting, setCorrecting] = useState(false);
  const note = (next: Said) => {
    said.value = { ...said.value, [traceId]: next };
  };

  async function doing(what: () => Promise<void>): Promise<void> {
    setBusy(true);
    setTrouble("");
    try {
      await what();
    } catch (error) {
      setTrouble(wordsOf(error));
    }
    setBusy(false);
  }

  const judge = (good: boolean) =>
    doing(async () => {
      const { example_id } = await teaching.judge(traceId, good);
      note({ good, example: good ? example_id : null });
      setCorrecting(!good && sql !== "");
    });

  const unsave = () =>
    doing(async () => {
      if (now.example) await teaching.remove(now.example, database);
      note({ good: null, example: null });
    });

  return (
    <div class="verdict stack">
      <div class="row" role="group" aria-label={words.isItRight}>
        <span class="small quiet" aria-hidden="true">
          {words.isItRight}
        </span>
        <button type="button" aria-pressed={now.good === true} disabled={busy} onClick={() => void judge(true)}>
          <Thumb down={false} /> {words.right}
        </button>
        <button type="button" aria-pressed={now.good === false} disabled={busy} onClick={() => void judge(false)}>
          <Thumb down={true} /> {words.wrong}
        </button>
        <span role="status" class="small">
          {now.example ? words.saved : now.good === false ? words.noted : now.good ? words.thanks : ""}
        </span>
        {now.example && (
          <button type="button" class="plain" disabled={busy} onClick={() => void unsave()}>
            {words.unsave}
          </button>
        )}
        {!correcting && now.good === false && sql && (
          <button type="button" class="plain" onClick={() => setCorrecting(true)}>
            {words.correct}
          </button>
        )}
      </div>
      {trouble && (
        <p class="notice bad" role="alert">
          {trouble}
        </p>
      )}
      {correcting && (
        <ExampleForm
          title={words.correct}
          question={question}
          sql={sql}
          fixedQuestion
          save={async (_, corrected, shared) => {
            const example = await teaching.add(question, corrected, database, shared);
            note({ good: false, example: example.id });
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
