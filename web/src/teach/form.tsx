import { useId, useState } from "preact/hooks";
import { errorMessage } from "../resource";
import { isAdmin, currentUser } from "../session";
import { strings } from "../strings";

const labels = strings.teach;

interface Props {
  title: string;
  question: string;
  sql: string;
  /** Makes the question read-only. */
  fixedQuestion?: boolean;
  save: (question: string, sql: string, shared: boolean) => Promise<void>;
  close: () => void;
}

/** Form to create or edit an example. */
export function ExampleForm({ title, question, sql, fixedQuestion, save, close }: Props) {
  const [typedQuestion, setQuestion] = useState(question);
  const [typedSql, setSql] = useState(sql);
  const [shared, setShared] = useState(false);
  const [error, setError] = useState("");
  const [saving, setSaving] = useState(false);
  const titleId = useId();
  // Sharing requires other users.
  const canShare = isAdmin.value && currentUser.value?.signs_in === true;

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    if (!typedQuestion.trim() || !typedSql.trim()) return setError(labels.bothNeeded);
    setSaving(true);
    try {
      await save(typedQuestion.trim(), typedSql.trim(), shared);
      close();
    } catch (error) {
      setError(errorMessage(error));
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
        <span class="small">{labels.question}</span>
        <input
          value={typedQuestion}
          readOnly={fixedQuestion}
          autofocus={!fixedQuestion}
          onInput={(event) => setQuestion(event.currentTarget.value)}
        />
      </label>
      <label class="stack">
        <span class="small">{labels.query}</span>
        <textarea
          class="mono"
          rows={6}
          spellcheck={false}
          value={typedSql}
          autofocus={fixedQuestion}
          onInput={(event) => setSql(event.currentTarget.value)}
        />
      </label>
      {canShare && (
        <label class="row">
          <input type="checkbox" checked={shared} onChange={(event) => setShared(event.currentTarget.checked)} />
          {labels.shared}
        </label>
      )}
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      <div class="row">
        <button type="submit" class="main" disabled={saving}>
          {labels.save}
        </button>
        <button type="button" onClick={close}>
          {labels.cancel}
        </button>
      </div>
    </form>
  );
}
