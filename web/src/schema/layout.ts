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
/** Sweeps of ordering: more change nothing that anyone would see. */
const sweeps = 6;

/**
 * Places tables in layers: those that others point at stand left of those that point at them, and within a layer each stands as near
 * as it can to the middle of its neighbours, so that few lines cross.
 */
export function layOut(nodes: Node[]): Diagram {
  const known = new Set(nodes.map((node) => node.id));
  const targets = new Map(nodes.map((node) => [node.id, [...new Set(node.pointsAt)].filter((id) => known.has(id) && id !== node.id)]));
  const linked = new Set<string>();
  for (const [id, ends] of targets) for (const end of ends) linked.add(id).add(end);

  const layers = ordered(layered(nodes.filter((node) => linked.has(node.id)).map((node) => node.id), targets), targets);
  const heights = new Map(nodes.map((node) => [node.id, node.height]));
  const tallest = Math.max(0, ...layers.map((layer) => stackHeight(layer, heights)));

  const boxes: Box[] = [];
  layers.forEach((layer, index) => {
    let y = (tallest - stackHeight(layer, heights)) / 2;
    for (const id of layer) {
      const height = heights.get(id) ?? 0;
      boxes.push({ id, x: index * (boxWidth + gapAcross), y, height });
      y += height + gapDown;
    }
  });

  let y = layers.length > 0 ? tallest + gapDown * 2 : 0;
  const loose = nodes.filter((node) => !linked.has(node.id));
  for (let start = 0; start < loose.length; start += loosePerRow) {
    const row = loose.slice(start, start + loosePerRow);
    row.forEach((node, index) => boxes.push({ id: node.id, x: index * (boxWidth + gapAcross / 3), y, height: node.height }));
    y += Math.max(...row.map((node) => node.height)) + gapDown;
  }

  const places = new Map(boxes.map((box) => [box.id, box]));
  const lines: Line[] = [];
  for (const [from, ends] of targets) {
    for (const to of ends) {
      const start = places.get(from);
      const end = places.get(to);
      if (start && end) lines.push({ from, to, path: curve(start, end) });
    }
  }
  return {
    boxes,
    lines,
    width: Math.max(0, ...boxes.map((box) => box.x + boxWidth)),
    height: Math.max(0, ...boxes.map((box) => box.y + box.height)),
  };
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

function ordered(layers: string[][], targets: Map<string, string[]>): string[][] {
  const neighbours = new Map<string, string[]>();
  const join = (a: string, b: string) => neighbours.set(a, [...(neighbours.get(a) ?? []), b]);
  for (const [from, ends] of targets) {
    for (const to of ends) {
      join(from, to);
      join(to, from);
    }
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
  return layers;
}

function mean(values: number[]): number {
  return values.length === 0 ? 0.5 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** From the side of one box to the facing side of the other; between boxes of one layer around their right sides. */
function curve(start: Box, end: Box): string {
  const startY = start.y + Math.min(start.height / 2, 40);
  const endY = end.y + Math.min(end.height / 2, 40);
  if (start.x === end.x) {
    const x = start.x + boxWidth;
    return `M${x},${startY} C${x + gapAcross / 2},${startY} ${x + gapAcross / 2},${endY} ${x},${endY}`;
  }
  const leftward = start.x > end.x;
  const from = leftward ? start.x : start.x + boxWidth;
  const to = leftward ? end.x + boxWidth : end.x;
  const bend = leftward ? -gapAcross / 2 : gapAcross / 2;
  return `M${from},${startY} C${from + bend},${startY} ${to - bend},${endY} ${to},${endY}`;
}
