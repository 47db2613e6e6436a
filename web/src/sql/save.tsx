import { useEffect, useState } from "preact/hooks";
import { api, type ProblemDetails } from "../api";
import { strings } from "../strings";
import { toProblem, ErrorBox } from "../error-box";

const labels = strings.sql;

/** Form that saves the query as a few-shot example. */
export function SaveExample({ sql, database, question, onQuestionChange }: { sql: string; database: string; question: string; onQuestionChange: (question: string) => void }) {
  const [saved, setSaved] = useState(false);
  const [problem, setProblem] = useState<ProblemDetails | null>(null);
  useEffect(() => setSaved(false), [sql, database, question]);
  const save = async () => {
    setProblem(null);
    try {
      await api.addExample({ sql, database, question: question.trim() });
      setSaved(true);
    } catch (error) {
      setProblem(toProblem(error));
    }
  };
  return (
    <details class="fold sql-save" open={question !== ""}>
      <summary>{labels.save}</summary>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <p class="small quiet">{labels.saveAbout}</p>
        <div class="row">
          <input
            class="sql-question"
            aria-label={labels.question}
            placeholder={labels.question}
            value={question}
            onInput={(event) => onQuestionChange(event.currentTarget.value)}
          />
          <button type="submit" disabled={!question.trim() || !sql.trim()}>
            {labels.saveNow}
          </button>
        </div>
        <p role="status" class="small">
          {saved ? labels.saved : ""}
        </p>
        {problem && <ErrorBox problem={problem} />}
      </form>
    </details>
  );
}
