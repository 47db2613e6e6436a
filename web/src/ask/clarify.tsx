import { useId } from "preact/hooks";
import type { ClarificationChoice, Clarification, Rows } from "../api";
import { isNumericColumn, truncatedText } from "../result/text";
import { strings } from "../strings";
import { SqlView } from "../trust/sql-view";
import { InlineCode } from "../trust/inline-code";
import { ask, running, type Turn, turns } from "./conversation";

const labels = strings.ask;

/** Clarifying question: one option per interpretation, with its first rows and its query. */
export function Clarify({ turn, clarification }: { turn: Turn; clarification: Clarification }) {
  const id = useId();
  return (
    <div class="stack" role="group" aria-labelledby={id}>
      <p id={id} class="summary-text breaks">
        {clarification.question}
      </p>
      <ul class="options">
        {clarification.options.map((option) => (
          <Option key={option.sql} turn={turn} option={option} />
        ))}
      </ul>
    </div>
  );
}

function Option({ turn, option }: { turn: Turn; option: ClarificationChoice }) {
  const id = useId();
  const { label, sql, why, preview } = option;
  const isChosen = turns.value.some((later) => later.id > turn.id && later.question === turn.question && later.choice?.sql === sql);
  return (
    <li class="option stack small">
      <div class="row">
        <button
          type="button"
          class="option-choose breaks"
          aria-describedby={id}
          disabled={running.value !== null}
          onClick={() => void ask(turn.question, { choice: option })}
        >
          {label}
        </button>
        {isChosen && <span class="tag good">{labels.chosen}</span>}
      </div>
      <p id={id} class="quiet breaks">
        <InlineCode text={why} />
      </p>
      <Preview label={label} rows={preview} />
      <details class="fold">
        <summary>
          {strings.trust.query} <span class="visually-hidden">{label}</span>
        </summary>
        <SqlView sql={sql} dialect={turn.run.dialect} />
      </details>
    </li>
  );
}

/** First rows of an option. */
function Preview({ label, rows }: { label: string; rows: Rows }) {
  const columnClasses = rows.columns.map((_, column) => (isNumericColumn(rows, column) ? "option-number" : undefined));
  return (
    <div class="option-scroll" tabIndex={0} role="group" aria-label={labels.previewOf(label)}>
      <table class="option-rows">
        <caption>{labels.preview(rows.rows.length, rows.truncated)}</caption>
        <thead>
          <tr>
            {rows.columns.map((name, column) => (
              <th scope="col" key={column} class={columnClasses[column]}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} class={columnClasses[column]}>
                  {cell === null ? <span class="null">{strings.result.null}</span> : truncatedText(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
