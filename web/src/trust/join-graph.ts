import type { Table } from "../api";

export interface Node {
  name: string;
  /** Distance from the first table in foreign keys, and the index among tables at that distance. */
  column: number;
  row: number;
}

export interface Edge {
  from: string;
  to: string;
  /** Join condition: `customer_id = customer_id`. */
  keys: string;
  inferred: boolean;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
}

/** Builds the join graph of a query: its tables, and the foreign keys between them. */
export function joinGraph(names: readonly string[], tables: readonly Table[]): Graph {
  const same = (a: string, b: string) => normalizedName(a) === normalizedName(b);
  const used = [...new Map(names.map((name) => [normalizedName(name), name])).values()];
  const edges: Edge[] = [];
  for (const from of used) {
    const table = tables.find((one) => same(one.name, from));
    for (const key of table?.foreign_keys ?? []) {
      const to = used.find((one) => same(one, key.table));
      if (!to || to === from) continue;
      const keys = key.columns.map((column, i) => `${column} = ${key.references[i] ?? ""}`).join(", ");
      const isDuplicate = edges.some((edge) => edge.from === from && edge.to === to && edge.keys === keys);
      if (!isDuplicate) edges.push({ from, to, keys, inferred: key.inferred ?? false });
    }
  }
  return { nodes: layoutNodes(used, edges), edges };
}

/** Strips schema and quotes, and folds the case. */
function normalizedName(name: string): string {
  return (name.split(".").pop() ?? name).replace(/["`[\]]/g, "").toLowerCase();
}

/** Places each connected component by breadth-first search, one below the other. */
function layoutNodes(names: readonly string[], edges: readonly Edge[]): Node[] {
  const degree = (name: string) => edges.filter((edge) => edge.from === name || edge.to === name).length;
  const remaining = [...names].sort((a, b) => degree(b) - degree(a));
  const nodes: Node[] = [];
  const rows: number[] = [];
  const addNode = (name: string, column: number) => {
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    nodes.push({ name, column, row });
    remaining.splice(remaining.indexOf(name), 1);
  };
  while (remaining[0] !== undefined) {
    // Start at an end of the path, so that it runs from left to right.
    const component = connectedTables(remaining[0], edges);
    const start = remaining.filter((name) => component.has(name)).sort((a, b) => degree(a) - degree(b))[0] ?? remaining[0];
    let frontier = [start];
    addNode(start, 0);
    for (let column = 1; frontier.length > 0; column++) {
      const next = remaining.filter((name) => edges.some((edge) => isAdjacent(edge, name, frontier)));
      for (const name of [...next]) addNode(name, column);
      frontier = next;
    }
    const nextRow = Math.max(...rows.map((row) => row ?? 0));
    rows.fill(nextRow);
  }
  return nodes;
}

function isAdjacent(edge: Edge, name: string, others: readonly string[]): boolean {
  return (edge.from === name && others.includes(edge.to)) || (edge.to === name && others.includes(edge.from));
}

function connectedTables(start: string, edges: readonly Edge[]): Set<string> {
  const found = new Set([start]);
  for (const name of found) {
    for (const edge of edges) {
      if (edge.from === name) found.add(edge.to);
      if (edge.to === name) found.add(edge.from);
    }
  }
  return found;
}
