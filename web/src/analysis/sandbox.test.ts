import { expect, test } from "vitest";
import { removeGlobals } from "./sandbox";

test("removes blocked globals from the scope and its prototypes", () => {
  const base = { fetch: () => "out", setTimeout: () => "stays" };
  const scope = Object.assign(Object.create(base) as Record<string, unknown>, { indexedDB: {}, caches: {} });
  removeGlobals(scope);
  for (const name of ["fetch", "indexedDB", "caches", "XMLHttpRequest"]) expect(scope[name], name).toBeUndefined();
  expect("fetch" in base).toBe(false);
  expect(scope["setTimeout"]).toBeTypeOf("function");
  // They cannot be reinstalled.
  expect(Reflect.set(scope, "fetch", () => "out")).toBe(false);
  expect(Reflect.defineProperty(scope, "fetch", { value: 1 })).toBe(false);
});
