import { describe, expect, test } from "vitest";
import { boxWidth, layoutGraph, type Box, type Node } from "./layout";

function node(id: string, ...references: string[]): Node {
  return { id, height: 60, references };
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + boxWidth && b.x < a.x + boxWidth && a.y < b.y + b.height && b.y < a.y + a.height;
}

function check(nodes: Node[]) {
  const diagram = layoutGraph(nodes);
  expect(diagram.boxes.map((box) => box.id).sort()).toEqual(nodes.map((one) => one.id).sort());
  for (const [index, box] of diagram.boxes.entries()) {
    expect(box.x + boxWidth).toBeLessThanOrEqual(diagram.width);
    expect(box.y + box.height).toBeLessThanOrEqual(diagram.height);
    for (const other of diagram.boxes.slice(index + 1)) expect(overlap(box, other), `${box.id} lies on ${other.id}`).toBe(false);
  }
  return { ...diagram, x: (id: string) => diagram.boxes.find((box) => box.id === id)?.x ?? NaN };
}

describe("diagram layout", () => {
  test("places referenced tables to the left", () => {
    const shop = check([
      node("customers"),
      node("products"),
      node("orders", "customers"),
      node("order_items", "orders", "products"),
      node("settings"),
    ]);
    expect(shop.x("customers")).toBeLessThan(shop.x("orders"));
    expect(shop.x("orders")).toBeLessThan(shop.x("order_items"));
    expect(shop.edges).toHaveLength(3);
  });

  test("routes long edges around the tables in between", () => {
    const { boxes, edges } = check([node("a"), node("b", "a"), node("c", "b", "a")]);
    const between = boxes.find((box) => box.id === "b");
    const long = edges.find((line) => line.from === "c" && line.to === "a");
    // The straight segment of the edge lies in the layer of `b`, above or below it.
    const level = Number(/L[\d.-]+,([\d.-]+)/.exec(long?.path ?? "")?.[1]);
    expect(between && (level < between.y || level > between.y + between.height)).toBe(true);
  });

  test("handles cycles, self-references and unknown targets", () => {
    const ring = check([node("a", "b"), node("b", "c"), node("c", "a"), node("staff", "staff"), node("lost", "nowhere")]);
    expect(ring.edges).toHaveLength(3);
  });

  test("splits tall layers to fit a screen", () => {
    const ends = Array.from({ length: 24 }, (_, index) => node(`end${index}`));
    const star = check([...ends, node("middle", ...ends.map((end) => end.id))]);
    expect(star.height).toBeLessThan(star.width * 1.5);
    expect(star.edges).toHaveLength(24);
  });

  test("returns an empty layout without tables", () => {
    expect(layoutGraph([])).toEqual({ boxes: [], edges: [], width: 0, height: 0 });
  });

  test("merges two foreign keys to the same table into one edge", () => {
    expect(check([node("flights", "airports", "airports"), node("airports")]).edges).toHaveLength(1);
  });

  test("lays out hundreds of tables", () => {
    const many = Array.from({ length: 300 }, (_, index) => node(`t${index}`, ...(index % 3 ? [`t${Math.floor(index / 2)}`] : [])));
    check(many);
  });
});
