import { useState } from "preact/hooks";
import { api, type Rows, type Table } from "../api";
import { wordsOf } from "../loaded";
import { go } from "../routes";
import { database, dialect } from "../session";
import { strings } from "../strings";
import { finder, firstRows, fullName, pointers, type Column } from "./tables";

const words = strings.schema;
const sampleRows = 5;

/** One table with all that is known of it. */
export function TableView({ table, tables, choose }: { table: Table; tables: Table[]; choose: (table: Table) => void }) {
  const find = finder(tables);
  const incoming = pointers(tables, table);
  return (
    <article class="card stack">
      <header class="row">
        <h2 class="schema-title">{fullName(table)}</h2>
        {table.kind === "view" && <span class="tag">{words.view}</span>}
        <button
          type="button"
          class="main schema-ask"
          onClick={() => go("ask", { question: words.question(fullName(table)), database: database.value })}
        >
          {words.ask}
        </button>
      </header>
      {table.comment && <p>{table.comment}</p>}
      <div class="schema-scroll" tabIndex={0} role="region" aria-label={words.columns}>
        <table class="schema-table">
          <thead>
            <tr>
              <th scope="col">{words.column}</th>
              <th scope="col">{words.type}</th>
              <th scope="col">{words.key}</th>
              <th scope="col">{words.about}</th>
            </tr>
          </thead>
          <tbody>
            {table.columns.map((column) => (
              <tr key={column.name}>
                <th scope="row">
                  <code>{column.name}</code>
                </th>
                <td>
                  <span class="mono">{column.type}</span>
                  {column.nullable === false && <span class="small quiet"> {words.always}</span>}
                </td>
                <td>
                  <Keys table={table} column={column} find={find} choose={choose} />
                </td>
                <td>
                  {column.comment}
                  {column.samples && column.samples.length > 0 && (
                    <span class="small quiet"> {words.such(column.samples.slice(0, 4))}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {incoming.length > 0 && (
        <div>
          <h3>{words.incoming}</h3>
          <ul>
            {incoming.map(({ table: other, key }) => (
              <li key={`${fullName(other)} ${key.columns.join()}`}>
                <button type="button" class="plain" onClick={() => choose(other)}>
                  {fullName(other)}
                </button>{" "}
                <span class="small quiet">
                  ({key.columns.join(", ")}){key.inferred && ` ${words.inferred}`}
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
      <Samples table={table} />
    </article>
  );
}

interface KeysProps {
  table: Table;
  column: Column;
  find: (from: Table, name: string) => Table | undefined;
  choose: (table: Table) => void;
}

function Keys({ table, column, find, choose }: KeysProps) {
  const outgoing = (table.foreign_keys ?? []).filter((key) => key.columns.includes(column.name));
  return (
    <>
      {table.primary_key?.includes(column.name) && <span class="tag good">{words.primary}</span>}{" "}
      {table.unique?.some((set) => set.length === 1 && set[0] === column.name) && <span class="tag">{words.unique}</span>}
      {outgoing.map((key) => {
        const target = find(table, key.table);
        const end = `${key.table}.${key.references[key.columns.indexOf(column.name)] ?? ""}`;
        return (
          <span key={end} class="schema-points">
            {target ? (
              <button type="button" class="plain" onClick={() => choose(target)}>
                <span aria-hidden="true">→ </span>
                <span class="unseen">{words.pointsAt} </span>
                {end}
              </button>
            ) : (
              end
            )}
            {key.inferred && <span class="small quiet"> {words.inferred}</span>}
          </span>
        );
      })}
    </>
  );
}

/** The first rows, fetched only when somebody wants to see them. */
function Samples({ table }: { table: Table }) {
  const [rows, setRows] = useState<Rows | null>(null);
  const [trouble, setTrouble] = useState("");
  const [loading, setLoading] = useState(false);

  async function look(): Promise<void> {
    setLoading(true);
    try {
      const sql = firstRows(table, dialect.value, sampleRows);
      setRows((await api.run({ sql, database: database.value, max_rows: sampleRows })).rows);
      setTrouble("");
    } catch (error) {
      setTrouble(wordsOf(error));
    }
    setLoading(false);
  }

  if (!rows) {
    return (
      <div class="row">
        <button type="button" onClick={() => void look()} disabled={loading}>
          {loading ? strings.app.loading : words.samples(sampleRows)}
        </button>
        {trouble && (
          <span class="notice bad" role="alert">
            {trouble}
          </span>
        )}
      </div>
    );
  }
  return (
    <div class="schema-scroll" tabIndex={0} role="region" aria-label={words.samplesOf(fullName(table))}>
      <table class="schema-table">
        <caption>{rows.rows.length === 0 ? words.noRows : words.samplesOf(fullName(table))}</caption>
        <thead>
          <tr>
            {rows.columns.map((name, index) => (
              <th scope="col" key={index}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, place) => (
                <td key={place}>{cell === null ? <span class="quiet">NULL</span> : String(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
