/** Table to be placed: its height, and the tables that it references. */
export interface Node {
  id: string;
  height: number;
  references: string[];
}
export interface Box {
  id: string;
  x: number;
  y: number;
  height: number;
}
export interface Edge {
  from: string;
  to: string;
  /** SVG path data. */
  path: string;
}
export interface Diagram {
  boxes: Box[];
  edges: Edge[];
  width: number;
  height: number;
}

export const boxWidth = 200;
const gapX = 90;
const gapY = 26;
/** Number of tables without foreign keys per row, below the others. */
const isolatedPerRow = 4;
/** Width of a screen divided by its height. */
const screenAspectRatio = 1.6;
/** Minimum height in pixels of a layer that may be split. */
const minSplitHeight = 500;
/** Number of barycenter sweeps; more make no visible difference. */
const orderingSweeps = 6;

/**
 * Layered graph layout (Sugiyama). Referenced tables are left of the tables that reference them;
 * the barycenter heuristic orders each layer to reduce crossings. Edges across several layers pass
 * through dummy nodes, so that they run beside tables rather than across them.
 */
export function layoutGraph(nodes: Node[]): Diagram {
  const known = new Set(nodes.map((node) => node.id));
  const targets = new Map(nodes.map((node) => [node.id, [...new Set(node.references)].filter((id) => known.has(id) && id !== node.id)]));
  const linked = new Set<string>();
  for (const [id, ends] of targets) for (const end of ends) linked.add(id).add(end);

  const heights = new Map(nodes.map((node) => [node.id, node.height]));
  const layers = splitTallLayers(assignLayers(nodes.filter((node) => linked.has(node.id)).map((node) => node.id), targets), heights);
  const routes = insertDummyNodes(layers, targets);
  orderLayers(layers, routes);
  const tallest = Math.max(0, ...layers.map((layer) => stackHeight(layer, heights)));

  const positions = new Map<string, Box>();
  layers.forEach((layer, index) => {
    let y = (tallest - stackHeight(layer, heights)) / 2;
    for (const id of layer) {
      const height = heights.get(id) ?? 0;
      positions.set(id, { id, x: index * (boxWidth + gapX), y, height });
      y += height + gapY;
    }
  });

  let y = layers.length > 0 ? tallest + gapY * 2 : 0;
  const isolated = nodes.filter((node) => !linked.has(node.id));
  for (let start = 0; start < isolated.length; start += isolatedPerRow) {
    const row = isolated.slice(start, start + isolatedPerRow);
    row.forEach((node, index) => positions.set(node.id, { id: node.id, x: index * (boxWidth + gapX / 3), y, height: node.height }));
    y += Math.max(...row.map((node) => node.height)) + gapY;
  }

  const boxes = [...positions.values()].filter((box) => known.has(box.id));
  const edges = routes.map((route) => ({ from: route[0] ?? "", to: route.at(-1) ?? "", path: edgePath(route.flatMap((id) => positions.get(id) ?? [])) }));
  return {
    boxes,
    edges,
    width: Math.max(0, ...boxes.map((box) => box.x + boxWidth)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  };
}

/** Splits layers that are much taller than a screen into several. */
function splitTallLayers(layers: string[][], heights: Map<string, number>): string[][] {
  const all = layers.reduce((sum, layer) => sum + stackHeight(layer, heights), 0);
  const columns = Math.sqrt((screenAspectRatio * all) / (boxWidth + gapX));
  const tallest = Math.max(minSplitHeight, (1.3 * all) / columns);
  return layers.flatMap((layer) => {
    const parts = Math.ceil(stackHeight(layer, heights) / tallest);
    const size = Math.ceil(layer.length / parts);
    return Array.from({ length: Math.ceil(layer.length / size) }, (_, part) => layer.slice(part * size, (part + 1) * size));
  });
}

/** Adds a dummy node to each layer that an edge crosses. Returns each edge as its list of nodes. */
function insertDummyNodes(layers: string[][], targets: Map<string, string[]>): string[][] {
  const depth = new Map(layers.flatMap((layer, index) => layer.map((id) => [id, index] as const)));
  const routes: string[][] = [];
  for (const [from, ends] of targets) {
    for (const to of ends) {
      const [start, end] = [depth.get(from) ?? 0, depth.get(to) ?? 0];
      const step = Math.sign(end - start);
      const route = [from];
      for (let layer = start + step; step !== 0 && layer !== end; layer += step) {
        // A unique id: no table name contains line breaks followed by a number.
        const dummy = `${from}\n${to}\n${layer}`;
        layers[layer]?.push(dummy);
        route.push(dummy);
      }
      routes.push([...route, to]);
    }
  }
  return routes;
}

function stackHeight(layer: string[], heights: Map<string, number>): number {
  return layer.reduce((sum, id) => sum + (heights.get(id) ?? 0) + gapY, -gapY);
}

/**
 * Assigns each table to the layer after the last of the tables that it references. Cycles are cut
 * at the back edge.
 */
function assignLayers(ids: string[], targets: Map<string, string[]>): string[][] {
  const depth = new Map<string, number>();
  const visiting = new Set<string>();
  const find = (id: string): number => {
    const found = depth.get(id);
    if (found !== undefined) return found;
    visiting.add(id);
    let deepest = -1;
    for (const end of targets.get(id) ?? []) if (!visiting.has(end)) deepest = Math.max(deepest, find(end));
    visiting.delete(id);
    depth.set(id, deepest + 1);
    return deepest + 1;
  };
  const layers: string[][] = [];
  for (const id of ids) {
    const layer = find(id);
    while (layers.length <= layer) layers.push([]);
    layers[layer]?.push(id);
  }
  return layers.filter((layer) => layer.length > 0);
}

function orderLayers(layers: string[][], routes: string[][]): void {
  const neighbours = new Map<string, string[]>();
  const connect = (a: string, b: string) => {
    const others = neighbours.get(a);
    if (others) others.push(b);
    else neighbours.set(a, [b]);
  };
  for (const route of routes) {
    route.forEach((id, index) => {
      const next = route[index + 1];
      if (next === undefined) return;
      connect(id, next);
      connect(next, id);
    });
  }
  // Relative positions within a layer, so that layers of different sizes are comparable.
  const position = new Map<string, number>();
  const recordPositions = (layer: string[]) => layer.forEach((id, index) => position.set(id, (index + 0.5) / layer.length));
  layers.forEach(recordPositions);
  for (let sweep = 0; sweep < orderingSweeps; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const barycenters = new Map(layer.map((id) => [id, mean((neighbours.get(id) ?? []).map((other) => position.get(other) ?? 0.5))]));
      layer.sort((a, b) => (barycenters.get(a) ?? 0) - (barycenters.get(b) ?? 0));
      recordPositions(layer);
    }
  }
}

function mean(values: number[]): number {
  return values.length === 0 ? 0.5 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * SVG path of an edge through its nodes, from the side of the first box to the facing side of the
 * last.
 */
function edgePath(route: Box[]): string {
  const [start, end] = [route[0], route.at(-1)];
  if (!start || !end) return "";
  const height = (box: Box) => box.y + Math.min(box.height / 2, 40);
  if (start.x === end.x) {
    // Connect boxes of the same layer on their right sides.
    const x = start.x + boxWidth;
    return `M${x},${height(start)} C${x + gapX / 2},${height(start)} ${x + gapX / 2},${height(end)} ${x},${height(end)}`;
  }
  const leftward = start.x > end.x;
  const bend = leftward ? -gapX / 2 : gapX / 2;
  const exitX = (box: Box) => (leftward ? box.x : box.x + boxWidth);
  const entryX = (box: Box) => (leftward ? box.x + boxWidth : box.x);
  let path = `M${exitX(start)},${height(start)}`;
  route.slice(1).forEach((box, index) => {
    const before = route[index] ?? start;
    path += ` C${exitX(before) + bend},${height(before)} ${entryX(box) - bend},${height(box)} ${entryX(box)},${height(box)}`;
    if (box !== end) path += ` L${exitX(box)},${height(box)}`;
  });
  return path;
}
