// Shared by all test files: test timeouts, and the selection of cases in quick runs.
import assert from "node:assert/strict";
import { test as register } from "node:test";
import { testTimeout } from "./timing.mjs";

/** Whether all cases run (`./test --full`) rather than a representative part. Only full runs measure speed. */
export const isFull = !["", "0", undefined].includes(process.env.QUERYMEND_TEST_FULL);

/** Registers a test with a timeout. */
export const test = (name, body) => register(name, { timeout: testTimeout }, body);

/** Registers a test for full runs only; another test covers similar behavior in quick runs. */
export const fullTest = (name, body) => register(name, { timeout: testTimeout, skip: isFull ? false : "only with ./test --full" }, body);

/** Pairs every item with every layout; in a quick run with one layout each, in rotation, so that all items and layouts occur. */
export function pairs(items, layouts) {
  assert.ok(items.length >= layouts.length, "a quick run would skip a layout");
  return items.flatMap((item, index) => (isFull ? layouts : [layouts[index % layouts.length]]).map((layout) => [item, layout]));
}

/** Returns all items; in a quick run only those with a kind that no earlier item has. */
export function oneOfEachKind(items, kindsOf) {
  const seen = new Set();
  return items.filter((item) => {
    const fresh = kindsOf(item).filter((kind) => !seen.has(kind));
    fresh.forEach((kind) => seen.add(kind));
    return isFull || fresh.length > 0;
  });
}
