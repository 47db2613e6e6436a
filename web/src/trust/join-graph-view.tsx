import { useEffect, useState } from "preact/hooks";
import { api, type Table } from "../api";
import { strings } from "../strings";
import { type Graph, joinGraph, type Node } from "./join-graph";

const box = { width: 150, height: 32, across: 60, down: 22 };
const maxNameLength = 18;

/** Schemas rarely change, so each is fetched once. */
const schemaCache = new Map<string, Promise<Table[]>>();

function cachedTables(database: string): Promise<Table[]> {
  const tables = schemaCache.get(database) ?? api.schema(database).then((schema) => schema.tables);
  schemaCache.set(database, tables);
  tables.catch(() => schemaCache.delete(database));
  return tables;
}

/** Join graph of a query, with a text alternative. */
export function JoinGraphView({ names, database }: { names: readonly string[]; database: string }) {
  const [graph, setGraph] = useState<Graph | null>(null);
  const list = names.join("\n");
  useEffect(() => {
    let active = true;
    const showGraph = (tables: Table[]) => active && setGraph(joinGraph(names, tables));
    cachedTables(database).then(showGraph, () => showGraph([]));
    return () => {
      active = false;
    };
  }, [list, database]);
  if (!graph || graph.nodes.length === 0) return null;
  const joined = new Set(graph.edges.flatMap((edge) => [edge.from, edge.to]));
  return (
    <div class="join-graph">
      <GraphDrawing graph={graph} />
      <ul class="small">
        {graph.edges.map((edge) => (
          <li key={`${edge.from} ${edge.to} ${edge.keys}`} class="breaks">
            {strings.trust.joinedBy(edge.from, edge.to, edge.keys)}
            {edge.inferred && <span class="quiet"> ({strings.trust.inferred})</span>}
          </li>
        ))}
        {graph.nodes.length > 1 &&
          graph.nodes
            .filter((node) => !joined.has(node.name))
            .map((node) => (
              <li key={node.name} class="breaks">
                {node.name}: <span class="quiet">{strings.trust.noKey}</span>
              </li>
            ))}
      </ul>
    </div>
  );
}

function GraphDrawing({ graph }: { graph: Graph }) {
  const x = (node: Node) => node.column * (box.width + box.across) + 1;
  const y = (node: Node) => node.row * (box.height + box.down) + 1;
  const width = Math.max(...graph.nodes.map(x)) + box.width + 1;
  const height = Math.max(...graph.nodes.map(y)) + box.height + 1;
  const find = (name: string) => graph.nodes.find((node) => node.name === name);
  return (
    <div class="join-scroll" tabIndex={width > 600 ? 0 : undefined}>
      <svg role="img" aria-label={strings.trust.tablesAlt} viewBox={`0 0 ${width} ${height}`} width={width} height={height}>
        {graph.edges.map((edge, i) => {
          const ends = [find(edge.from), find(edge.to)].filter((node) => node !== undefined).sort((a, b) => a.column - b.column);
          const [a, b] = ends;
          if (!a || !b) return null;
          return <path key={i} class={edge.inferred ? "join-line join-inferred" : "join-line"} d={edgePath(a, b, x, y)} />;
        })}
        {graph.nodes.map((node) => (
          <g key={node.name}>
            <rect class="join-box" x={x(node)} y={y(node)} width={box.width} height={box.height} rx="5" />
            <text class="join-name" x={x(node) + box.width / 2} y={y(node) + box.height / 2 + 4}>
              {node.name.length > maxNameLength ? `${node.name.slice(0, maxNameLength - 1)}…` : node.name}
              <title>{node.name}</title>
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}

/**
 * Curve between the facing sides of two boxes, or along their right sides if they are in the same
 * column.
 */
function edgePath(a: Node, b: Node, x: (node: Node) => number, y: (node: Node) => number): string {
  const middle = box.height / 2;
  if (a.column === b.column) {
    const side = x(a) + box.width;
    return `M${side} ${y(a) + middle} C${side + 30} ${y(a) + middle} ${side + 30} ${y(b) + middle} ${side} ${y(b) + middle}`;
  }
  const from = x(a) + box.width;
  const bend = (from + x(b)) / 2;
  return `M${from} ${y(a) + middle} C${bend} ${y(a) + middle} ${bend} ${y(b) + middle} ${x(b)} ${y(b) + middle}`;
}
