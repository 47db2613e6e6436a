import type { Table } from "../api";

export interface Node {
  name: string;
  /** How many keys away from the first table, and which one of those. */
  column: number;
  row: number;
}

export interface Edge {
  from: string;
  to: string;
  /** What is compared: `customer_id = customer_id`. */
  keys: string;
  inferred: boolean;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
}

/** The tables of a query and the keys that tie them together. */
export function joinGraph(names: readonly string[], tables: readonly Table[]): Graph {
  const same = (a: string, b: string) => bare(a) === bare(b);
  const used = [...new Map(names.map((name) => [bare(name), name])).values()];
  const edges: Edge[] = [];
  for (const from of used) {
    const table = tables.find((one) => same(one.name, from));
    for (const key of table?.foreign_keys ?? []) {
      const to = used.find((one) => same(one, key.table));
      if (!to || to === from) continue;
      const keys = key.columns.map((column, i) => `${column} = ${key.references[i] ?? ""}`).join(", ");
      const twice = edges.some((edge) => edge.from === from && edge.to === to && edge.keys === keys);
      if (!twice) edges.push({ from, to, keys, inferred: key.inferred ?? false });
    }
  }
  return { nodes: placed(used, edges), edges };
}

/** Names may come with their schema, and in another case. */
function bare(name: string): string {
  return (name.split(".").pop() ?? name).replace(/["`[\]]/g, "").toLowerCase();
}

/** From the table with the most keys outward; tables that nothing ties to it begin again below. */
function placed(names: readonly string[], edges: readonly Edge[]): Node[] {
  const degree = (name: string) => edges.filter((edge) => edge.from === name || edge.to === name).length;
  const left = [...names].sort((a, b) => degree(b) - degree(a));
  const nodes: Node[] = [];
  const rows: number[] = [];
  const put = (name: string, column: number) => {
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    nodes.push({ name, column, row });
    left.splice(left.indexOf(name), 1);
  };
  while (left[0] !== undefined) {
    // Begin at an end of the path where there is one, so that the path is drawn from left to right.
    const tied = reach(left[0], edges);
    const start = left.filter((name) => tied.has(name)).sort((a, b) => degree(a) - degree(b))[0] ?? left[0];
    let wave = [start];
    put(start, 0);
    for (let column = 1; wave.length > 0; column++) {
      const next = left.filter((name) => edges.some((edge) => touches(edge, name, wave)));
      for (const name of [...next]) put(name, column);
      wave = next;
    }
    const low = Math.max(...rows.map((row) => row ?? 0));
    rows.fill(low);
  }
  return nodes;
}

function touches(edge: Edge, name: string, others: readonly string[]): boolean {
  return (edge.from === name && others.includes(edge.to)) || (edge.to === name && others.includes(edge.from));
}

function reach(start: string, edges: readonly Edge[]): Set<string> {
  const found = new Set([start]);
  for (const name of found) {
    for (const edge of edges) {
      if (edge.from === name) found.add(edge.to);
      if (edge.to === name) found.add(edge.from);
    }
  }
  return found;
}
