// Test timeouts, scaled by the slowdown of the machine: they detect hangs, not slow machines.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";

/** Maximum factor: with a larger one a run would take more than a day. */
const maxSlowdown = 50;
/** Slowdown of this machine, at least 1; measured by `./test`. */
const slowdown = Math.min(Math.max(Number(process.env.QUERYMEND_TEST_SLOWDOWN) || 1, 1), maxSlowdown);

/** Timeout for a single condition, in milliseconds. */
export const hangTimeout = Math.ceil(120_000 * slowdown);
/** Timeout for an analysis with Python in the browser, which takes longest. */
export const analysisTimeout = 5 * hangTimeout;
/** Timeout of a whole test, in milliseconds, for steps without their own timeout. */
export const testTimeout = 10 * hangTimeout;

/** Waits until a condition holds, and fails with `what` after `hangTimeout`. */
export async function waitUntil(what, holds) {
  const begun = Date.now();
  while (!(await holds())) {
    assert.ok(Date.now() - begun < hangTimeout, `timed out after ${Date.now() - begun} ms waiting until ${what}`);
    await pause(50);
  }
}
