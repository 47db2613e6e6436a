import { useMemo, useState } from "preact/hooks";
import { api, type Table } from "../api";
import { lazy } from "../lazy";
import { useResource } from "../resource";
import { database, databases } from "../session";
import { strings } from "../strings";
import "./schema.css";
import { TableView } from "./table";
import { fullName, search } from "./tables";

const labels = strings.schema;
const Diagram = lazy(() => import("./diagram").then((view) => view.Diagram));

/** Schema browser: tables, columns, keys and an entity-relationship diagram. */
export function Schema() {
  const { value, error, loading, reload } = useResource(() => api.schema(database.value), [database.value]);
  const [typed, setTyped] = useState("");
  const [name, setName] = useState("");
  const [showDiagram, setShowDiagram] = useState(false);
  const tables = value?.tables ?? [];
  const matches = useMemo(() => search(tables, typed), [tables, typed]);
  const chosen = tables.find((table) => fullName(table) === name) ?? matches[0];

  return (
    <div class="schema">
      <section class="schema-list stack" aria-label={labels.tables}>
        <h1>{labels.title}</h1>
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
          <span class="small">{labels.search}</span>
          <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} autocomplete="off" />
        </label>
        <p class="small quiet" role="status">
          {value ? labels.count(matches.length, tables.length) : loading ? strings.app.loading : ""}
        </p>
        {error && (
          <p class="notice bad" role="alert">
            {error}{" "}
            <button type="button" onClick={reload}>
              {strings.app.tryAgain}
            </button>
          </p>
        )}
        <ul class="schema-names">
          {matches.map((table) => (
            <li key={fullName(table)}>
              <button type="button" class="schema-name" aria-pressed={table === chosen} onClick={() => setName(fullName(table))}>
                <span>{fullName(table)}</span>
                <span class="small quiet">{table.kind === "view" ? labels.view : labels.columnCount(table.columns.length)}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section class="schema-detail stack" aria-label={labels.detail}>
        <div class="row" role="group" aria-label={labels.show}>
          <button type="button" aria-pressed={!showDiagram} onClick={() => setShowDiagram(false)}>
            {labels.asTable}
          </button>
          <button type="button" aria-pressed={showDiagram} onClick={() => setShowDiagram(true)}>
            {labels.asDiagram}
          </button>
        </div>
        {showDiagram && tables.length > 0 && <Diagram tables={tables} chosen={chosen} choose={(table: Table) => setName(fullName(table))} />}
        {chosen && <TableView key={fullName(chosen)} table={chosen} tables={tables} choose={(table) => setName(fullName(table))} />}
      </section>
    </div>
  );
}
