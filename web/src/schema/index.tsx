import { useMemo, useState } from "preact/hooks";
import { api, type Table } from "../api";
import { lazy } from "../lazy";
import { useLoaded } from "../loaded";
import { database, databases } from "../session";
import { strings } from "../strings";
import "./schema.css";
import { TableView } from "./table";
import { fullName, search } from "./tables";

const words = strings.schema;
const Diagram = lazy(() => import("./diagram").then((view) => view.Diagram));

/** What there is to ask about: tables, their columns and keys, and how they hang together. */
export function Schema() {
  const { value, trouble, loading, again } = useLoaded(() => api.schema(database.value), [database.value]);
  const [typed, setTyped] = useState("");
  const [name, setName] = useState("");
  const [drawn, setDrawn] = useState(false);
  const tables = value?.tables ?? [];
  const found = useMemo(() => search(tables, typed), [tables, typed]);
  const chosen = tables.find((table) => fullName(table) === name) ?? found[0];

  return (
    <div class="schema">
      <section class="schema-list stack" aria-label={words.tables}>
        <h1>{words.title}</h1>
        {databases.value.length > 1 && (
          <label class="stack">
            <span class="small">{strings.app.database}</span>
            <select value={database.value} onChange={(event) => (database.value = event.currentTarget.value)}>
              {databases.value.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
        )}
        <label class="stack">
          <span class="small">{words.search}</span>
          <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
        </label>
        <p class="small quiet" role="status">
          {value ? words.count(found.length, tables.length) : loading ? strings.app.loading : ""}
        </p>
        {trouble && (
          <p class="notice bad" role="alert">
            {trouble}{" "}
            <button type="button" onClick={again}>
              {strings.app.tryAgain}
            </button>
          </p>
        )}
        <ul class="schema-names">
          {found.map((table) => (
            <li key={fullName(table)}>
              <button type="button" class="schema-name" aria-pressed={table === chosen} onClick={() => setName(fullName(table))}>
                <span>{fullName(table)}</span>
                <span class="small quiet">{table.kind === "view" ? words.view : words.columnCount(table.columns.length)}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section class="schema-detail stack" aria-label={words.detail}>
        <div class="row" role="group" aria-label={words.show}>
          <button type="button" aria-pressed={!drawn} onClick={() => setDrawn(false)}>
            {words.asTable}
          </button>
          <button type="button" aria-pressed={drawn} onClick={() => setDrawn(true)}>
            {words.asDiagram}
          </button>
        </div>
        {drawn && tables.length > 0 && <Diagram tables={tables} chosen={chosen} choose={(table: Table) => setName(fullName(table))} />}
        {chosen && <TableView key={fullName(chosen)} table={chosen} tables={tables} choose={(table) => setName(fullName(table))} />}
      </section>
    </div>
  );
}
