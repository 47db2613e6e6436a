import type { Table } from "../api";

export type ForeignKey = NonNullable<Table["foreign_keys"]>[number];
export type Column = Table["columns"][number];

/** The name by which a table is told from all others. */
export function fullName(table: Table): string {
  return table.schema ? `${table.schema}.${table.name}` : table.name;
}

/** Tables by whatever a key says they point at: their full name, or their name alone where they live side by side. */
export function finder(tables: Table[]): (from: Table, name: string) => Table | undefined {
  const byFullName = new Map(tables.map((table) => [fullName(table), table]));
  const byName = new Map(tables.map((table) => [table.name, table]));
  return (from, name) => byFullName.get(name) ?? (from.schema ? byFullName.get(`${from.schema}.${name}`) : undefined) ?? byName.get(name);
}

/** Keys of other tables that point at this one. */
export function pointers(tables: Table[], at: Table): { table: Table; key: ForeignKey }[] {
  const find = finder(tables);
  return tables.flatMap((table) => (table.foreign_keys ?? []).filter((key) => find(table, key.table) === at).map((key) => ({ table, key })));
}

/** The tables that have every word of the search in their name, a column or a comment; those with it in their name first. */
export function search(tables: Table[], typed: string): Table[] {
  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return tables;
  const holds = (text: string) => wanted.every((word) => text.includes(word));
  const found = tables.filter((table) => holds(allWords(table)));
  const named = (table: Table) => (holds(fullName(table).toLowerCase()) ? 0 : 1);
  return found.sort((a, b) => named(a) - named(b));
}

function allWords(table: Table): string {
  const columns = table.columns.flatMap((column) => [column.name, column.comment ?? ""]);
  return [fullName(table), table.comment ?? "", ...columns].join("\n").toLowerCase();
}

/** A table with those that are at most so many keys away from it. */
export function near(tables: Table[], chosen: Table, steps: number): Table[] {
  const find = finder(tables);
  let found = new Set([chosen]);
  for (let step = 0; step < steps; step += 1) {
    const wider = new Set(found);
    for (const table of tables) {
      for (const key of table.foreign_keys ?? []) {
        const other = find(table, key.table);
        if (other && found.has(other)) wider.add(table);
        if (other && found.has(table)) wider.add(other);
      }
    }
    found = wider;
  }
  return tables.filter((table) => found.has(table));
}

/** Dialects that write names in backticks; all others take double quotes. */
const backticks = ["mysql", "spark", "hive", "bigquery", "databricks"];

/**
 * A query for the first rows of a table. The columns are named, since `*` would also ask for those that the user may not see, and
 * be refused.
 */
export function firstRows(table: Table, dialect: string, rows: number): string {
  const mark = backticks.includes(dialect) ? "`" : '"';
  const quoted = (name: string) => mark + name.replaceAll(mark, mark + mark) + mark;
  const columns = table.columns.map((column) => quoted(column.name)).join(", ");
  const name = table.schema ? `${quoted(table.schema)}.${quoted(table.name)}` : quoted(table.name);
  return `SELECT ${columns} FROM ${name} LIMIT ${rows}`;
}
