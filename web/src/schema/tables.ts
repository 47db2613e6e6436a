import type { Table } from "../api";

export type ForeignKey = NonNullable<Table["foreign_keys"]>[number];
export type Column = Table["columns"][number];

/** Returns the schema-qualified name of a table. */
export function fullName(table: Table): string {
  return table.schema ? `${table.schema}.${table.name}` : table.name;
}

/**
 * Returns a function that resolves the target of a foreign key: by qualified name, then in the same
 * schema, then by bare name.
 */
export function tableResolver(tables: Table[]): (from: Table, name: string) => Table | undefined {
  const byFullName = new Map(tables.map((table) => [fullName(table), table]));
  const byName = new Map(tables.map((table) => [table.name, table]));
  return (from, name) => byFullName.get(name) ?? (from.schema ? byFullName.get(`${from.schema}.${name}`) : undefined) ?? byName.get(name);
}

/** Returns foreign keys of other tables that reference this one. */
export function incomingForeignKeys(tables: Table[], at: Table): { table: Table; key: ForeignKey }[] {
  const resolve = tableResolver(tables);
  return tables.flatMap((table) => (table.foreign_keys ?? []).filter((key) => resolve(table, key.table) === at).map((key) => ({ table, key })));
}

/**
 * Returns tables that contain every term in their name, columns or comments. Name matches come
 * first.
 */
export function search(tables: Table[], typed: string): Table[] {
  const terms = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (terms.length === 0) return tables;
  const matchesAll = (text: string) => terms.every((term) => text.includes(term));
  const matches = tables.filter((table) => matchesAll(searchText(table)));
  const nameRank = (table: Table) => (matchesAll(fullName(table).toLowerCase()) ? 0 : 1);
  return matches.sort((a, b) => nameRank(a) - nameRank(b));
}

function searchText(table: Table): string {
  const columns = table.columns.flatMap((column) => [column.name, column.comment ?? ""]);
  return [fullName(table), table.comment ?? "", ...columns].join("\n").toLowerCase();
}

/** Returns the tables at most `maxDistance` foreign keys away from a table. */
export function tablesWithin(tables: Table[], chosen: Table, maxDistance: number): Table[] {
  const resolve = tableResolver(tables);
  let reached = new Set([chosen]);
  for (let step = 0; step < maxDistance; step += 1) {
    const wider = new Set(reached);
    for (const table of tables) {
      for (const key of table.foreign_keys ?? []) {
        const other = resolve(table, key.table);
        if (other && reached.has(other)) wider.add(table);
        if (other && reached.has(table)) wider.add(other);
      }
    }
    reached = wider;
  }
  return tables.filter((table) => reached.has(table));
}

/** Dialects that quote identifiers with backticks; all others use double quotes. */
const backtickDialects = ["mysql", "spark", "hive", "bigquery", "databricks"];

/**
 * Builds a query for the first rows of a table. Lists the columns explicitly, because `*` would
 * include denied columns and be rejected.
 */
export function sampleQuery(table: Table, dialect: string, rows: number): string {
  const quote = backtickDialects.includes(dialect) ? "`" : '"';
  const quoted = (name: string) => quote + name.replaceAll(quote, quote + quote) + quote;
  const columns = table.columns.map((column) => quoted(column.name)).join(", ");
  const name = table.schema ? `${quoted(table.schema)}.${quoted(table.name)}` : quoted(table.name);
  return `SELECT ${columns} FROM ${name} LIMIT ${rows}`;
}
