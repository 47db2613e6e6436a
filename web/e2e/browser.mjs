// Browser of all tests. Each tab has a fresh profile and records dialogs, errors and violations of the Content Security Policy.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { isFull } from "./suite.mjs";
import { hangTimeout } from "./timing.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const shots = path.join(here, "shots");
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the path of Chromium: `CHROMIUM`, or the first one on PATH. */
function executable() {
  const folders = (process.env.PATH ?? "").split(":");
  const found = process.env.CHROMIUM ?? folders.flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => path.join(folder, name))).find((file) => fs.existsSync(file));
  assert.ok(found, "Chromium is not on PATH; set CHROMIUM to its path");
  return found;
}

export const wide = { width: 1280, height: 800 };
export const phone = { width: 360, height: 740 };

let launched = null;
after(async () => (await launched?.catch(() => null))?.close());

/** Returns the shared browser. Launches it on first use and after a crash. */
export function browser() {
  launched ??= launch();
  return launched;
}

async function launch() {
  const started = await chromium.launch({
    executablePath: executable(),
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    timeout: hangTimeout,
  });
  started.once("disconnected", () => {
    launched = null;
  });
  return started;
}

/**
 * Opens a tab in a fresh profile, which is closed when the test `t` ends. Collects unexpected dialogs and errors in `failures`.
 */
export async function openTab({ t, viewport = wide, dark = false, reducedMotion = "reduce", touch = false } = {}) {
  const context = await (await browser()).newContext({ viewport, colorScheme: dark ? "dark" : "light", reducedMotion, hasTouch: touch, isMobile: touch });
  t?.after(() => context.close());
  context.setDefaultTimeout(hangTimeout);
  const page = await context.newPage();
  const failures = [];
  page.on("dialog", (dialog) => {
    failures.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => failures.push(`error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/i.test(message.text())) failures.push(`policy: ${message.text()}`);
  });
  await page.addInitScript(() => {
    globalThis.violations = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.violations.push(`${event.effectiveDirective} ${event.blockedURI}`));
    // Scale the long timeouts of the page, so that they do not expire on a slow machine; no test waits for them.
    const later = setTimeout.bind(globalThis);
    globalThis.setTimeout = (task, delay, ...rest) => later(task, delay >= 10_000 ? 100 * delay : delay, ...rest);
  });
  return { context, page, failures };
}

/** Asserts that no dialogs, errors or policy violations occurred. */
export async function clean({ page, failures }) {
  assert.deepEqual(failures, []);
  assert.deepEqual(await page.evaluate(() => globalThis.violations), []);
}

/** Saves a screenshot in a full run. */
export async function shot(page, name) {
  if (!isFull) return;
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: false });
}

/**
 * Asserts that axe finds no accessibility violations. Runs it outside the page's Content Security Policy, which would block it.
 */
export async function accessible(page, what) {
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  const violations = found.violations.map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`).join("\n    ")}`);
  assert.deepEqual(violations, [], `accessibility violations in ${what}:\n${violations.join("\n")}`);
}
