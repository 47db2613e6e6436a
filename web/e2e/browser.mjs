// The browser of all tests: each tab has a fresh profile, and watches for dialogs, errors, and breaches of the page's policy.
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

/** Debian's Chromium, or whichever is named. */
function executable() {
  const folders = (process.env.PATH ?? "").split(":");
  const found = process.env.CHROMIUM ?? folders.flatMap((folder) => ["chromium", "chromium-browser", "google-chrome"].map((name) => path.join(folder, name))).find((file) => fs.existsSync(file));
  assert.ok(found, "there is no chromium on PATH; name one with CHROMIUM=");
  return found;
}

export const wide = { width: 1280, height: 800 };
export const phone = { width: 360, height: 740 };

let launched = null;
after(async () => (await launched?.catch(() => null))?.close());

/** Returns the one browser of this process, which is launched for the first tab, and again should it crash. */
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
 * Opens a tab in a profile of its own, which is closed when the test `t` ends. Its `troubles` are things that must not come up in it.
 */
export async function openTab({ t, viewport = wide, dark = false, reducedMotion = "reduce", touch = false } = {}) {
  const context = await (await browser()).newContext({ viewport, colorScheme: dark ? "dark" : "light", reducedMotion, hasTouch: touch, isMobile: touch });
  t?.after(() => context.close());
  context.setDefaultTimeout(hangTimeout);
  const page = await context.newPage();
  const troubles = [];
  page.on("dialog", (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("pageerror", (error) => troubles.push(`error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Refused to/i.test(message.text())) troubles.push(`policy: ${message.text()}`);
  });
  await page.addInitScript(() => {
    globalThis.breaches = [];
    addEventListener("securitypolicyviolation", (event) => globalThis.breaches.push(`${event.effectiveDirective} ${event.blockedURI}`));
    // The page gives up on slow work after ten seconds and more; no test waits for that, and on a slow machine it must not come.
    const later = setTimeout.bind(globalThis);
    globalThis.setTimeout = (task, delay, ...rest) => later(task, delay >= 10_000 ? 100 * delay : delay, ...rest);
  });
  return { context, page, troubles };
}

/** Nothing that must not come up has come up. */
export async function clean({ page, troubles }) {
  assert.deepEqual(troubles, []);
  assert.deepEqual(await page.evaluate(() => globalThis.breaches), []);
}

/** Keeps a picture for people to look at, in a full run. */
export async function shot(page, name) {
  if (!isFull) return;
  fs.mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, `${name}.png`), fullPage: false });
}

/**
 * What axe finds wrong with what is shown. It runs as the browser's own tools do, outside the page's policy, which would not let it in.
 */
export async function accessible(page, what) {
  const found = await page.evaluate(`(() => { ${axe}; return axe.run(document, { resultTypes: ["violations"] }); })()`);
  const told = found.violations.map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? ""}`).join("\n    ")}`);
  assert.deepEqual(told, [], `${what} is not accessible to all:\n${told.join("\n")}`);
}
