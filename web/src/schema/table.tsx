import { useState } from "preact/hooks";
import { api, type Rows, type Table } from "../api";
import { errorMessage } from "../resource";
import { navigate } from "../routes";
import { database, dialect } from "../session";
import { strings } from "../strings";
import { tableResolver, sampleQuery, fullName, incomingForeignKeys, type Column } from "./tables";

const labels = strings.schema;
const sampleRows = 5;

/** Details of a table. */
export function TableView({ table, tables, choose }: { table: Table; tables: Table[]; choose: (table: Table) => void }) {
  const resolve = tableResolver(tables);
  const incoming = incomingForeignKeys(tables, table);
  return (
    <article class="card stack">
      <header class="row">
        <h2 class="schema-title">{fullName(table)}</h2>
        {table.kind === "view" && <span class="tag">{labels.view}</span>}
        <button
          type="button"
          class="main schema-ask"
          onClick={() => navigate("ask", { question: labels.question(fullName(table)), database: database.value })}
        >
          {labels.ask}
        </button>
      </header>
      {table.comment && <p>{table.comment}</p>}
      <div class="schema-scroll" tabIndex={0} role="region" aria-label={labels.columns}>
        <table class="schema-table">
          <thead>
            <tr>
              <th scope="col">{labels.column}</th>
              <th scope="col">{labels.type}</th>
              <th scope="col">{labels.key}</th>
              <th scope="col">{labels.about}</th>
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
                  {column.nullable === false && <span class="small quiet"> {labels.notNull}</span>}
                </td>
                <td>
                  <Keys table={table} column={column} find={resolve} choose={choose} />
                </td>
                <td>
                  {column.comment}
                  {column.samples && column.samples.length > 0 && (
                    <span class="small quiet"> {labels.sampleValues(column.samples.slice(0, 4))}</span>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {incoming.length > 0 && (
        <div>
          <h3>{labels.incoming}</h3>
          <ul>
            {incoming.map(({ table: other, key }) => (
              <li key={`${fullName(other)} ${key.columns.join()}`}>
                <button type="button" class="plain" onClick={() => choose(other)}>
                  {fullName(other)}
                </button>{" "}
                <span class="small quiet">
                  ({key.columns.join(", ")}){key.inferred && ` ${labels.inferred}`}
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
      {table.primary_key?.includes(column.name) && <span class="tag good">{labels.primary}</span>}{" "}
      {table.unique?.some((set) => set.length === 1 && set[0] === column.name) && <span class="tag">{labels.unique}</span>}
      {outgoing.map((key) => {
        const target = find(table, key.table);
        const end = `${key.table}.${key.references[key.columns.indexOf(column.name)] ?? ""}`;
        return (
          <span key={end} class="schema-points">
            {target ? (
              <button type="button" class="plain" onClick={() => choose(target)}>
                <span aria-hidden="true">→ </span>
                <span class="visually-hidden">{labels.references} </span>
                {end}
              </button>
            ) : (
              end
            )}
            {key.inferred && <span class="small quiet"> {labels.inferred}</span>}
          </span>
        );
      })}
    </>
  );
}

/** Sample rows, fetched on demand. */
function Samples({ table }: { table: Table }) {
  const [rows, setRows] = useState<Rows | null>(null);
  const [error, setError] = useState("");
  const [loading, setLoading] = useState(false);

  async function loadRows(): Promise<void> {
    setLoading(true);
    try {
      const sql = sampleQuery(table, dialect.value, sampleRows);
      setRows((await api.run({ sql, database: database.value, max_rows: sampleRows })).rows);
      setError("");
    } catch (error) {
      setError(errorMessage(error));
    }
    setLoading(false);
  }

  if (!rows) {
    return (
      <div class="row">
        <button type="button" onClick={() => void loadRows()} disabled={loading}>
          {loading ? strings.app.loading : labels.samples(sampleRows)}
        </button>
        {error && (
          <span class="notice bad" role="alert">
            {error}
          </span>
        )}
      </div>
    );
  }
  return (
    <div class="schema-scroll" tabIndex={0} role="region" aria-label={labels.samplesOf(fullName(table))}>
      <table class="schema-table">
        <caption>{rows.rows.length === 0 ? labels.noRows : labels.samplesOf(fullName(table))}</caption>
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
              {row.map((cell, column) => (
                <td key={column}>{cell === null ? <span class="quiet">NULL</span> : String(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
