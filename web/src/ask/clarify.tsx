import { useId } from "preact/hooks";
import type { Choice, Clarification, Rows } from "../api";
import { numeric, truncatedText } from "../result/text";
import { strings } from "../strings";
import { SqlView } from "../trust/sql-view";
import { Words } from "../trust/words";
import { ask, running, type Turn, turns } from "./conversation";

const words = strings.ask;

/** A clarifying question: one option for each reading, with its first rows and its query. */
export function Clarify({ turn, clarification }: { turn: Turn; clarification: Clarification }) {
  const id = useId();
  return (
    <div class="stack" role="group" aria-labelledby={id}>
      <p id={id} class="in-words breaks">
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

function Option({ turn, option }: { turn: Turn; option: Choice }) {
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
        {isChosen && <span class="tag good">{words.chosen}</span>}
      </div>
      <p id={id} class="quiet breaks">
        <Words text={why} />
      </p>
      <Preview label={label} rows={preview} />
      <details class="fold">
        <summary>
          {strings.trust.query} <span class="unseen">{label}</span>
        </summary>
        <SqlView sql={sql} dialect={turn.run.dialect} />
      </details>
    </li>
  );
}

/** The first rows of an option. */
function Preview({ label, rows }: { label: string; rows: Rows }) {
  const looks = rows.columns.map((_, column) => (numeric(rows, column) ? "option-number" : undefined));
  return (
    <div class="option-scroll" tabIndex={0} role="group" aria-label={words.previewOf(label)}>
      <table class="option-rows">
        <caption>{words.preview(rows.rows.length, rows.truncated)}</caption>
        <thead>
          <tr>
            {rows.columns.map((name, column) => (
              <th scope="col" key={column} class={looks[column]}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} class={looks[column]}>
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
