import { describe, expect, test } from "vitest";
import { boxWidth, layOut, type Box, type Node } from "./layout";

function node(id: string, ...pointsAt: string[]): Node {
  return { id, height: 60, pointsAt };
}

function overlap(a: Box, b: Box): boolean {
  return a.x < b.x + boxWidth && b.x < a.x + boxWidth && a.y < b.y + b.height && b.y < a.y + a.height;
}

function check(nodes: Node[]) {
  const diagram = layOut(nodes);
  expect(diagram.boxes.map((box) => box.id).sort()).toEqual(nodes.map((one) => one.id).sort());
  for (const [index, box] of diagram.boxes.entries()) {
    expect(box.x + boxWidth).toBeLessThanOrEqual(diagram.width);
    expect(box.y + box.height).toBeLessThanOrEqual(diagram.height);
    for (const other of diagram.boxes.slice(index + 1)) expect(overlap(box, other), `${box.id} lies on ${other.id}`).toBe(false);
  }
  return { ...diagram, x: (id: string) => diagram.boxes.find((box) => box.id === id)?.x ?? NaN };
}

describe("the diagram", () => {
  test("sets tables that others point at left of those", () => {
    const shop = check([
      node("customers"),
      node("products"),
      node("orders", "customers"),
      node("order_items", "orders", "products"),
      node("settings"),
    ]);
    expect(shop.x("customers")).toBeLessThan(shop.x("orders"));
    expect(shop.x("orders")).toBeLessThan(shop.x("order_items"));
    expect(shop.lines).toHaveLength(3);
  });

  test("leads a line over several layers past the tables between", () => {
    const { boxes, lines } = check([node("a"), node("b", "a"), node("c", "b", "a")]);
    const between = boxes.find((box) => box.id === "b");
    const long = lines.find((line) => line.from === "c" && line.to === "a");
    // The straight part of the line lies in the layer of `b`, and either above or below it.
    const level = Number(/L[\d.-]+,([\d.-]+)/.exec(long?.path ?? "")?.[1]);
    expect(between && (level < between.y || level > between.y + between.height)).toBe(true);
  });

  test("bears rings, tables that point at themselves, and ends that are not there", () => {
    const ring = check([node("a", "b"), node("b", "c"), node("c", "a"), node("staff", "staff"), node("lost", "nowhere")]);
    expect(ring.lines).toHaveLength(3);
  });

  test("has the shape of a screen, also where one table points at many", () => {
    const ends = Array.from({ length: 24 }, (_, index) => node(`end${index}`));
    const star = check([...ends, node("middle", ...ends.map((end) => end.id))]);
    expect(star.height).toBeLessThan(star.width * 1.5);
    expect(star.lines).toHaveLength(24);
  });

  test("is empty without tables", () => {
    expect(layOut([])).toEqual({ boxes: [], lines: [], width: 0, height: 0 });
  });

  test("draws one line where two keys point at the same table", () => {
    expect(check([node("flights", "airports", "airports"), node("airports")]).lines).toHaveLength(1);
  });

  test("takes hundreds of tables", () => {
    const many = Array.from({ length: 300 }, (_, index) => node(`t${index}`, ...(index % 3 ? [`t${Math.floor(index / 2)}`] : [])));
    check(many);
  });
});
