import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Fix, type LocatedFinding, type RunResponse, type ProblemDetails } from "../api";
import { DatabasePicker } from "../ask/composer";
import { duration } from "../duration";
import { ResultView } from "../result";
import { navigationState } from "../routes";
import { database, dialect } from "../session";
import { strings } from "../strings";
import { isAbortError, toProblem, ErrorBox } from "../error-box";
import { format } from "../trust/format";
import { findingRange } from "../trust/offsets";
import { useCheck } from "./check";
import { replacements } from "./edits";
import { Editor } from "./editor";
import { FindingList } from "./findings";
import { SaveExample } from "./save";

const labels = strings.sql;

/** Query and question, preserved while other views are open. */
const query = signal("");
const question = signal("");

/** SQL editor: checks while typing, runs read-only. */
export function Sql() {
  const area = useRef<HTMLTextAreaElement>(null);
  const controller = useRef<AbortController | null>(null);
  const [lastRun, setLastRun] = useState<{ result: RunResponse; sql: string; database: string } | null>(null);
  const [problem, setProblem] = useState<ProblemDetails | null>(null);
  const [busy, setBusy] = useState(false);
  const sql = query.value;
  const databaseName = database.value;

  useEffect(() => {
    const state = navigationState.value;
    if (!state) return;
    if (state.database) database.value = state.database;
    if (state.sql !== undefined) query.value = format(state.sql, dialect.value).text;
    question.value = state.question ?? "";
    navigationState.value = null;
  }, [navigationState.value]);
  useEffect(() => () => controller.current?.abort(), []);

  const live = useCheck(sql, databaseName, question.value);
  const marks = useMemo(
    () => (live.sql === sql && live.response ? live.response.findings.map((finding) => ({ finding, range: findingRange(finding, sql) })) : []),
    [live, sql],
  );
  const run = async () => {
    if (!sql.trim() || busy) return;
    controller.current = new AbortController();
    setBusy(true);
    setProblem(null);
    try {
      const result = await api.run({ sql, database: databaseName }, undefined, controller.current.signal);
      setLastRun({ result, sql, database: databaseName });
    } catch (error) {
      if (!isAbortError(error)) setProblem(toProblem(error));
    }
    setBusy(false);
  };
  const apply = (fix: Fix) => {
    // Fixes are valid only for the text that was checked.
    if (live.sql === sql && area.current) typeEdits(area.current, replacements(sql, fix.edits));
  };
  const goTo = (finding: LocatedFinding) => {
    const { start, end } = findingRange(finding, live.sql);
    area.current?.focus();
    area.current?.setSelectionRange(start, end);
  };
  const replaceAll = (text: string) => area.current && typeEdits(area.current, [{ start: 0, end: sql.length, text }]);
  return (
    <div class="sql-page stack">
      <div>
        <h1>{labels.title}</h1>
        <p class="quiet small">{labels.about}</p>
      </div>
      <Editor area={area} value={sql} dialect={dialect.value} marks={marks} onChange={(text) => (query.value = text)} onRun={() => void run()} />
      <div class="row">
        {busy ? (
          <button type="button" onClick={() => controller.current?.abort()}>
            {labels.stop}
          </button>
        ) : (
          <button type="button" class="main" disabled={!sql.trim()} onClick={() => void run()}>
            {labels.run}
          </button>
        )}
        <button type="button" disabled={!sql.trim()} onClick={() => replaceAll(format(sql, dialect.value).text)}>
          {labels.format}
        </button>
        <button type="button" disabled={!sql} onClick={() => replaceAll("")}>
          {labels.clear}
        </button>
        <DatabasePicker disabled={busy} />
        <span class="quiet small sql-keys">{busy ? labels.running : labels.keys}</span>
      </div>
      <FindingList live={live} apply={apply} goTo={goTo} />
      {live.problem && <ErrorBox problem={live.problem} />}
      {problem && <ErrorBox problem={withoutHint(problem)} retry={problem.code === "preflight_validation_failed" ? undefined : () => void run()} />}
      {lastRun && (
        <section class="card stack" aria-label={labels.result}>
          <ResultView rows={lastRun.result.rows} source={{ sql: lastRun.sql, database: lastRun.database }} />
          {typeof lastRun.result.ms === "number" && <p class="quiet small">{labels.took(duration(lastRun.result.ms))}</p>}
        </section>
      )}
      <SaveExample sql={sql} database={databaseName} question={question.value} onQuestionChange={(text) => (question.value = text)} />
    </div>
  );
}

/** Removes the hint, which is meant for API clients: the findings are already shown above. */
function withoutHint(problem: ProblemDetails): ProblemDetails {
  return problem.code === "preflight_validation_failed" ? { ...problem, hint: null } : problem;
}

/** Applies edits as if typed, so that undo works. */
function typeEdits(area: HTMLTextAreaElement, edits: readonly { start: number; end: number; text: string }[]): void {
  area.focus();
  for (const { start, end, text } of edits) {
    area.setSelectionRange(start, end);
    const typed = text ? document.execCommand("insertText", false, text) : start === end || document.execCommand("delete");
    if (typed) continue;
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
