import { useEffect, useState } from "preact/hooks";
import { api, type Told } from "../api";
import { strings } from "../strings";
import { toldOf, TroubleNotice } from "../trouble";

const words = strings.sql;

/** Keeps a query with the question that it answers, so that questions like it are answered better. */
export function Save({ sql, database, question, change }: { sql: string; database: string; question: string; change: (question: string) => void }) {
  const [saved, setSaved] = useState(false);
  const [told, setTold] = useState<Told | null>(null);
  useEffect(() => setSaved(false), [sql, database, question]);
  const save = async () => {
    setTold(null);
    try {
      await api.addExample({ sql, database, question: question.trim() });
      setSaved(true);
    } catch (error) {
      setTold(toldOf(error));
    }
  };
  return (
    <details class="fold sql-save" open={question !== ""}>
      <summary>{words.save}</summary>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <p class="small quiet">{words.saveAbout}</p>
        <div class="row">
          <input
            class="sql-question"
            aria-label={words.question}
            placeholder={words.question}
            value={question}
            onInput={(event) => change(event.currentTarget.value)}
          />
          <button type="submit" disabled={!question.trim() || !sql.trim()}>
            {words.saveNow}
          </button>
        </div>
        <p role="status" class="small">
          {saved ? words.saved : ""}
        </p>
        {told && <TroubleNotice told={told} />}
      </form>
    </details>
  );
}
