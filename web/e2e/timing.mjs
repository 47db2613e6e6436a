// Timeouts of tests, scaled by how slow the machine is: a test tells a hang from an answer, never a slow machine from a fast one.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

/** Largest factor that is believed: beyond it a run would not end within a day. */
const maxSlowdown = 50;
/** How many times slower this machine is than usual, at least 1; `./test` measures it. */
const slowdown = Math.min(Math.max(Number(process.env.QUERYMEND_TEST_SLOWDOWN) || 1, 1), maxSlowdown);

/** Milliseconds to wait for something that must happen before it counts as a hang. */
export const hangTimeout = Math.ceil(120_000 * slowdown);
/** The same for an answer that Python computes in the browser, which takes longer than anything else. */
export const analysisTimeout = 5 * hangTimeout;
/** Milliseconds after which a whole test has hung. It ends only what has no timeout of its own. */
export const testTimeout = 10 * hangTimeout;

/** Waits until a condition holds, and fails with `what` after `hangTimeout`. */
export async function waitUntil(what, holds) {
  const begun = Date.now();
  while (!(await holds())) {
    assert.ok(Date.now() - begun < hangTimeout, `timed out after ${Date.now() - begun} ms waiting until ${what}`);
    await pause(50);
  }
}
