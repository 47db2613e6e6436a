import { expect, test } from "vitest";
import { isolate } from "./isolate";

test("ways out are gone from the world and from what it inherits", () => {
  const base = { fetch: () => "out", setTimeout: () => "stays" };
  const world = Object.assign(Object.create(base) as Record<string, unknown>, { indexedDB: {}, caches: {} });
  isolate(world);
  for (const name of ["fetch", "indexedDB", "caches", "XMLHttpRequest"]) expect(world[name], name).toBeUndefined();
  expect("fetch" in base).toBe(false);
  expect(world["setTimeout"]).toBeTypeOf("function");
  // Nor can they be put back.
  expect(Reflect.set(world, "fetch", () => "out")).toBe(false);
  expect(Reflect.defineProperty(world, "fetch", { value: 1 })).toBe(false);
});
