// What every test file shares: tests that end when they hang, and how much of a large suite is run.
import assert from "node:assert/strict";
import { test as register } from "node:test";
import { testTimeout } from "./timing.mjs";

/** Whether large suites run whole (`./test --full`) rather than a representative part. Only then is speed measured. */
export const isFull = !["", "0", undefined].includes(process.env.QUERYMEND_TEST_FULL);

/** Registers a test that fails when it hangs. */
export const test = (name, body) => register(name, { timeout: testTimeout }, body);

/** Registers a test that only a full run has, where the quick run shows the same kind of behaviour by another. */
export const fullTest = (name, body) => register(name, { timeout: testTimeout, skip: isFull ? false : "only with ./test --full" }, body);

/** Pairs every item with every layout; in a quick run with one layout each, in turn, so that each of both still occurs. */
export function pairs(items, layouts) {
  assert.ok(items.length >= layouts.length, "a quick run would leave out a layout");
  return items.flatMap((item, index) => (isFull ? layouts : [layouts[index % layouts.length]]).map((layout) => [item, layout]));
}

/** Returns all items; in a quick run only those that bring a kind which none before them has. */
export function oneOfEachKind(items, kindsOf) {
  const seen = new Set();
  return items.filter((item) => {
    const fresh = kindsOf(item).filter((kind) => !seen.has(kind));
    fresh.forEach((kind) => seen.add(kind));
    return isFull || fresh.length > 0;
  });
}
