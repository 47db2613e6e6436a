/** A table as the diagram needs it: how tall it is drawn, and which tables it points at. */
export interface Node {
  id: string;
  height: number;
  pointsAt: string[];
}
export interface Box {
  id: string;
  x: number;
  y: number;
  height: number;
}
export interface Line {
  from: string;
  to: string;
  /** A path for SVG. */
  path: string;
}
export interface Diagram {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

export const boxWidth = 200;
const gapAcross = 90;
const gapDown = 26;
/** Tables that hang together with no other are set in rows of so many below the rest. */
const loosePerRow = 4;
/** Screens are so many times as wide as they are high. */
const screenShape = 1.6;
/** A layer of this height is never parted. */
const shortLayer = 500;
/** Sweeps of ordering: more change nothing that anyone would see. */
const sweeps = 6;

/**
 * Places tables in layers: those that others point at stand left of those that point at them, and within a layer each stands as near
 * as it can to the middle of its neighbours, so that few lines cross. A line over several layers has a place of its own in those
 * between, so that it runs beside the tables and not behind them.
 */
export function layOut(nodes: Node[]): Diagram {
  const known = new Set(nodes.map((node) => node.id));
  const targets = new Map(nodes.map((node) => [node.id, [...new Set(node.pointsAt)].filter((id) => known.has(id) && id !== node.id)]));
  const linked = new Set<string>();
  for (const [id, ends] of targets) for (const end of ends) linked.add(id).add(end);

  const heights = new Map(nodes.map((node) => [node.id, node.height]));
  const layers = split(layered(nodes.filter((node) => linked.has(node.id)).map((node) => node.id), targets), heights);
  const routes = passing(layers, targets);
  ordered(layers, routes);
  const tallest = Math.max(0, ...layers.map((layer) => stackHeight(layer, heights)));

  const places = new Map<string, Box>();
  layers.forEach((layer, index) => {
    let y = (tallest - stackHeight(layer, heights)) / 2;
    for (const id of layer) {
      const height = heights.get(id) ?? 0;
      places.set(id, { id, x: index * (boxWidth + gapAcross), y, height });
      y += height + gapDown;
    }
  });

  let y = layers.length > 0 ? tallest + gapDown * 2 : 0;
  const loose = nodes.filter((node) => !linked.has(node.id));
  for (let start = 0; start < loose.length; start += loosePerRow) {
    const row = loose.slice(start, start + loosePerRow);
    row.forEach((node, index) => places.set(node.id, { id: node.id, x: index * (boxWidth + gapAcross / 3), y, height: node.height }));
    y += Math.max(...row.map((node) => node.height)) + gapDown;
  }

  const boxes = [...places.values()].filter((box) => known.has(box.id));
  const lines = routes.map((route) => ({ from: route[0] ?? "", to: route.at(-1) ?? "", path: drawn(route.flatMap((id) => places.get(id) ?? [])) }));
  return {
    boxes,
    lines,
    width: Math.max(0, ...boxes.map((box) => box.x + boxWidth)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  };
}

/** Parts layers that would be much taller than a screen is, beside the others: around one table there may be dozens that it points at. */
function split(layers: string[][], heights: Map<string, number>): string[][] {
  const all = layers.reduce((sum, layer) => sum + stackHeight(layer, heights), 0);
  const columns = Math.sqrt((screenShape * all) / (boxWidth + gapAcross));
  const tallest = Math.max(shortLayer, (1.3 * all) / columns);
  return layers.flatMap((layer) => {
    const parts = Math.ceil(stackHeight(layer, heights) / tallest);
    const size = Math.ceil(layer.length / parts);
    return Array.from({ length: Math.ceil(layer.length / size) }, (_, part) => layer.slice(part * size, (part + 1) * size));
  });
}

/** Puts a place into each layer that a line passes, and gives each line as the places that it goes through. */
function passing(layers: string[][], targets: Map<string, string[]>): string[][] {
  const depth = new Map(layers.flatMap((layer, index) => layer.map((id) => [id, index] as const)));
  const routes: string[][] = [];
  for (const [from, ends] of targets) {
    for (const to of ends) {
      const [start, end] = [depth.get(from) ?? 0, depth.get(to) ?? 0];
      const step = Math.sign(end - start);
      const route = [from];
      for (let layer = start + step; step !== 0 && layer !== end; layer += step) {
        // No table has a line break in its name and a number behind it.
        const place = `${from}\n${to}\n${layer}`;
        layers[layer]?.push(place);
        route.push(place);
      }
      routes.push([...route, to]);
    }
  }
  return routes;
}

function stackHeight(layer: string[], heights: Map<string, number>): number {
  return layer.reduce((sum, id) => sum + (heights.get(id) ?? 0) + gapDown, -gapDown);
}

/** The layer of each table is one more than the furthest of those that it points at. A ring is cut where it comes back to itself. */
function layered(ids: string[], targets: Map<string, string[]>): string[][] {
  const depth = new Map<string, number>();
  const waiting = new Set<string>();
  const find = (id: string): number => {
    const found = depth.get(id);
    if (found !== undefined) return found;
    waiting.add(id);
    let deepest = -1;
    for (const end of targets.get(id) ?? []) if (!waiting.has(end)) deepest = Math.max(deepest, find(end));
    waiting.delete(id);
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

function ordered(layers: string[][], routes: string[][]): void {
  const neighbours = new Map<string, string[]>();
  const join = (a: string, b: string) => {
    const others = neighbours.get(a);
    if (others) others.push(b);
    else neighbours.set(a, [b]);
  };
  for (const route of routes) {
    route.forEach((id, index) => {
      const next = route[index + 1];
      if (next === undefined) return;
      join(id, next);
      join(next, id);
    });
  }
  // Places are shares of the layer's length, so that long and short layers can be compared.
  const place = new Map<string, number>();
  const note = (layer: string[]) => layer.forEach((id, index) => place.set(id, (index + 0.5) / layer.length));
  layers.forEach(note);
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const middle = new Map(layer.map((id) => [id, mean((neighbours.get(id) ?? []).map((other) => place.get(other) ?? 0.5))]));
      layer.sort((a, b) => (middle.get(a) ?? 0) - (middle.get(b) ?? 0));
      note(layer);
    }
  }
}

function mean(values: number[]): number {
  return values.length === 0 ? 0.5 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A line through all of its places: from the side of the first box to the facing side of the last. */
function drawn(route: Box[]): string {
  const [start, end] = [route[0], route.at(-1)];
  if (!start || !end) return "";
  const height = (box: Box) => box.y + Math.min(box.height / 2, 40);
  if (start.x === end.x) {
    // Boxes of one layer are joined around their right sides.
    const x = start.x + boxWidth;
    return `M${x},${height(start)} C${x + gapAcross / 2},${height(start)} ${x + gapAcross / 2},${height(end)} ${x},${height(end)}`;
  }
  const leftward = start.x > end.x;
  const bend = leftward ? -gapAcross / 2 : gapAcross / 2;
  const leaves = (box: Box) => (leftward ? box.x : box.x + boxWidth);
  const enters = (box: Box) => (leftward ? box.x + boxWidth : box.x);
  let path = `M${leaves(start)},${height(start)}`;
  route.slice(1).forEach((box, index) => {
    const before = route[index] ?? start;
    path += ` C${leaves(before) + bend},${height(before)} ${enters(box) - bend},${height(box)} ${enters(box)},${height(box)}`;
    if (box !== end) path += ` L${leaves(box)},${height(box)}`;
  });
  return path;
}
