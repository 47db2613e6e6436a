import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, type Fix, type Placed, type Ran, type Told } from "../api";
import { DatabasePicker } from "../ask/composer";
import { duration } from "../duration";
import { ResultView } from "../result";
import { handed } from "../routes";
import { database, dialect } from "../session";
import { strings } from "../strings";
import { isAborted, toldOf, TroubleNotice } from "../trouble";
import { format } from "../trust/format";
import { exactly } from "../trust/place";
import { useCheck } from "./check";
import { replacements } from "./edits";
import { Editor } from "./editor";
import { FindingList } from "./findings";
import { Save } from "./save";

const words = strings.sql;

/** The query and its question stay while other views are looked at. */
const query = signal("");
const question = signal("");

/** Write SQL by hand: checked as it is typed, run read-only. */
export function Sql() {
  const area = useRef<HTMLTextAreaElement>(null);
  const stop = useRef<AbortController | null>(null);
  const [ran, setRan] = useState<{ result: Ran; sql: string; database: string } | null>(null);
  const [told, setTold] = useState<Told | null>(null);
  const [busy, setBusy] = useState(false);
  const sql = query.value;
  const of = database.value;

  useEffect(() => {
    const hand = handed.value;
    if (!hand) return;
    if (hand.database) database.value = hand.database;
    if (hand.sql !== undefined) query.value = format(hand.sql, dialect.value).text;
    question.value = hand.question ?? "";
    handed.value = null;
  }, [handed.value]);
  useEffect(() => () => stop.current?.abort(), []);

  const live = useCheck(sql, of, question.value);
  const marks = useMemo(
    () => (live.sql === sql && live.checked ? live.checked.findings.map((finding) => ({ finding, piece: exactly(finding, sql) })) : []),
    [live, sql],
  );
  const run = async () => {
    if (!sql.trim() || busy) return;
    stop.current = new AbortController();
    setBusy(true);
    setTold(null);
    try {
      const result = await api.run({ sql, database: of }, undefined, stop.current.signal);
      setRan({ result, sql, database: of });
    } catch (error) {
      if (!isAborted(error)) setTold(toldOf(error));
    }
    setBusy(false);
  };
  const apply = (fix: Fix) => {
    // A finding about another text than this one says nothing about where to change it.
    if (live.sql === sql && area.current) rewrite(area.current, replacements(sql, fix.edits));
  };
  const goTo = (finding: Placed) => {
    const { start, end } = exactly(finding, live.sql);
    area.current?.focus();
    area.current?.setSelectionRange(start, end);
  };
  const whole = (text: string) => area.current && rewrite(area.current, [{ start: 0, end: sql.length, text }]);
  return (
    <div class="sql-page stack">
      <div>
        <h1>{words.title}</h1>
        <p class="quiet small">{words.about}</p>
      </div>
      <Editor area={area} value={sql} dialect={dialect.value} marks={marks} change={(text) => (query.value = text)} run={() => void run()} />
      <div class="row">
        {busy ? (
          <button type="button" onClick={() => stop.current?.abort()}>
            {words.stop}
          </button>
        ) : (
          <button type="button" class="main" disabled={!sql.trim()} onClick={() => void run()}>
            {words.run}
          </button>
        )}
        <button type="button" disabled={!sql.trim()} onClick={() => whole(format(sql, dialect.value).text)}>
          {words.format}
        </button>
        <button type="button" disabled={!sql} onClick={() => whole("")}>
          {words.clear}
        </button>
        <DatabasePicker disabled={busy} />
        <span class="quiet small sql-keys">{busy ? words.running : words.keys}</span>
      </div>
      <FindingList live={live} apply={apply} goTo={goTo} />
      {live.told && <TroubleNotice told={live.told} />}
      {told && <TroubleNotice told={plainly(told)} retry={told.code === "preflight_validation_failed" ? undefined : () => void run()} />}
      {ran && (
        <section class="card stack" aria-label={words.result}>
          <ResultView rows={ran.result.rows} source={{ sql: ran.sql, database: ran.database }} />
          {typeof ran.result.ms === "number" && <p class="quiet small">{words.took(duration(ran.result.ms))}</p>}
        </section>
      )}
      <Save sql={sql} database={of} question={question.value} change={(text) => (question.value = text)} />
    </div>
  );
}

/** What is wrong with a query stands above already, where it can be mended; the hint is for programs. */
function plainly(told: Told): Told {
  return told.code === "preflight_validation_failed" ? { ...told, hint: null } : told;
}

/** Changes the text as if it were typed, so that it can be undone like anything else that was typed. */
function rewrite(area: HTMLTextAreaElement, all: readonly { start: number; end: number; text: string }[]): void {
  area.focus();
  for (const { start, end, text } of all) {
    area.setSelectionRange(start, end);
    const typed = text ? document.execCommand("insertText", false, text) : start === end || document.execCommand("delete");
    if (typed) continue;
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
