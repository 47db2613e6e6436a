import { useId, useState } from "preact/hooks";
import { wordsOf } from "../loaded";
import { administers, me } from "../session";
import { strings } from "../strings";

const words = strings.teach;

interface Props {
  title: string;
  question: string;
  sql: string;
  /** A question that is part of an answer stays as it was asked. */
  fixedQuestion?: boolean;
  save: (question: string, sql: string, shared: boolean) => Promise<void>;
  close: () => void;
}

/** A question with the query that answers it, to be written or changed. */
export function ExampleForm({ title, question, sql, fixedQuestion, save, close }: Props) {
  const [typedQuestion, setQuestion] = useState(question);
  const [typedSql, setSql] = useState(sql);
  const [shared, setShared] = useState(false);
  const [trouble, setTrouble] = useState("");
  const [saving, setSaving] = useState(false);
  const titleId = useId();
  // Sharing with all needs others to share with.
  const mayShare = administers.value && me.value?.signs_in === true;

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (!typedQuestion.trim() || !typedSql.trim()) return setTrouble(words.bothNeeded);
    setSaving(true);
    try {
      await save(typedQuestion.trim(), typedSql.trim(), shared);
      close();
    } catch (error) {
      setTrouble(wordsOf(error));
      setSaving(false);
    }
  }

  return (
    <form
      class="teach-form card stack"
      aria-labelledby={titleId}
      onSubmit={(event) => void submit(event)}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      <h3 id={titleId}>{title}</h3>
      <label class="stack">
        <span class="small">{words.question}</span>
        <input
          value={typedQuestion}
          readOnly={fixedQuestion}
          autofocus={!fixedQuestion}
          onInput={(event) => setQuestion(event.currentTarget.value)}
        />
      </label>
      <label class="stack">
        <span class="small">{words.query}</span>
        <textarea
          class="mono"
          rows={6}
          spellcheck={false}
          value={typedSql}
          autofocus={fixedQuestion}
          onInput={(event) => setSql(event.currentTarget.value)}
        />
      </label>
      {mayShare && (
        <label class="row">
          <input type="checkbox" checked={shared} onChange={(event) => setShared(event.currentTarget.checked)} />
          {words.shared}
        </label>
      )}
      {trouble && (
        <p class="notice bad" role="alert">
          {trouble}
        </p>
      )}
      <div class="row">
        <button type="submit" class="main" disabled={saving}>
          {words.save}
        </button>
        <button type="button" onClick={close}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}
