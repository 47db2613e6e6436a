// Fallback analysis: if no query succeeds, the browser fetches rows and computes the answer with sandboxed Python.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe } from "node:test";
import { accessible, clean, openTab, shot } from "./browser.mjs";
import { pyodide, start } from "./servers.mjs";
import { fullTest, test } from "./suite.mjs";
import { analysisTimeout, waitUntil } from "./timing.mjs";

const median = "What is the median price of a product?";
const endless = "Which product never ends?";
const broken = "Which product is broken?";
const cut = "How many items are there in all orders?";
const program = /Python program with pandas/;
// SQLite has no such function, and no rule can fix it.
const hopeless = "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) FROM products";

// Tries to escape the sandbox of the worker and prints what it reached; the output also proves that it ran to the end.
const escape = `
import sys, gc
found = []
for name in ("js", "pyodide_js", "pyodide.http", "pyodide.code", "_pyodide_core", "micropip"):
    try:
        __import__(name)
        found.append("module " + name)
    except ImportError:
        pass
for thing in gc.get_objects():
    if "JsProxy" not in str(type(thing)) and "JsProxy" not in type(thing).__name__:
        continue
    for name in ("fetch", "XMLHttpRequest", "WebSocket", "indexedDB", "caches", "importScripts", "BroadcastChannel", "eval"):
        try:
            if getattr(thing, name, None) is not None:
                found.append("name " + name)
        except BaseException:
            pass
    for call in (lambda: thing.loadPackage("/v1/databases"), lambda: thing.constructor.constructor("return fetch('/v1/databases')")()):
        try:
            call()
        except BaseException:
            pass
import urllib.request
try:
    urllib.request.urlopen("/v1/databases")
    found.append("urllib")
except BaseException:
    pass
print("escapes:", len(found), sorted(set(found)))
`;

const failing = (question, code) => [
  { question, about: program, replies: ["```python\n" + code + "\n```"] },
  { question, replies: [hopeless, `${hopeless} LIMIT 1`, `${hopeless} LIMIT 2`] },
];
const script = [
  ...failing(median, escape + 'result = products["price"].median()'),
  ...failing(endless, "while True:\n    result = 1"),
  { question: cut, about: program, replies: ["result = len(order_items)"] },
  { question: cut, replies: [hopeless.replaceAll("products", "order_items")] },
  ...failing(broken, "result = products['no such column'].sum()"),
];

// Each analysis loads Python and pandas into its own worker, about twelve CPU seconds; so only two run concurrently, and one
// program both attacks the sandbox and computes the answer.
describe("analysis in the browser", { concurrency: 2 }, () => {
  let server;
  before(async () => {
    assert.ok(fs.existsSync(path.join(pyodide, "pyodide.mjs")), `Pyodide is missing in ${pyodide}: run scripts/pyodide.sh`);
    server = await start({ script, config: { limits: { rows: 200 } }, args: ["--pyodide", pyodide] });
  });
  after(async () => {
    await server?.stop();
  });

  async function ask(page, question) {
    await page.goto(server.url);
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    const analysis = page.getByRole("article", { name: question }).getByRole("region", { name: "Computed in the browser" });
    await analysis.waitFor().catch(async () => {
      assert.fail(`no analysis started; the page shows: ${(await page.textContent("main"))?.slice(0, 600)}\nthe server: ${server.log().slice(-1500)}`);
    });
    return analysis;
  }

  async function prices() {
    const reply = await server.request("/v1/run", { sql: "SELECT price FROM products ORDER BY price" });
    return reply.json().rows.rows.map(([price]) => price);
  }

  test("computes an answer in the browser sandbox", async (t) => {
    const sorted = await prices();
    const right = (sorted[Math.floor((sorted.length - 1) / 2)] + sorted[Math.ceil((sorted.length - 1) / 2)]) / 2;
    const tab = await openTab({ t });
    const { page, context } = tab;
    const analysis = await ask(page, median);
    const requests = [];
    context.on("request", (request) => requests.push(new URL(request.url()).pathname));
    await analysis.getByText("lower confidence").waitFor();
    await shot(page, "analysis-running");
    await analysis.getByText("The analysis is complete.").waitFor({ state: "attached", timeout: analysisTimeout });
    const shown = await analysis.textContent();
    const number = right.toFixed(6).replace(/\.?0+$/, "");
    assert.ok(shown.replaceAll(",", "").includes(number), `${number} is not in: ${shown.slice(0, 400)}`);
    await analysis.getByText("How it was computed").click();
    await analysis.getByText('products["price"].median()').waitFor();
    await analysis.getByText(`${sorted.length} rows`).waitFor();
    // The count occurs only in the output, not in the code shown.
    assert.match(shown, /escapes: 0 \[\]/, shown.slice(0, 400));
    // Requests of the worker are recorded, and none has the URL that the program tried to fetch.
    assert.ok(requests.some((path) => path.startsWith("/pyodide/pandas-")), `requests: ${requests.join(", ")}`);
    assert.deepEqual(requests.filter((path) => path === "/v1/databases"), []);
    await accessible(page, "an analysis in the browser");
    await shot(page, "analysis-done");
    await clean(tab);
  });

  fullTest("warns about truncated tables above the result", async (t) => {
    const tab = await openTab({ t });
    const analysis = await ask(tab.page, cut);
    await analysis.getByText("Not all rows of order_items could be fetched").waitFor({ timeout: analysisTimeout });
    await clean(tab);
  });

  fullTest("stops an endless program", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    const analysis = await ask(page, endless);
    await analysis.getByText("Computing…").waitFor({ timeout: analysisTimeout });
    await analysis.getByRole("button", { name: "Stop" }).click();
    await analysis.getByText("The analysis was stopped.").waitFor();
    await waitUntil("the worker has ended", () => page.workers().length === 0);
    await clean(tab);
  });

  test("reports the failing line and does not retry", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    const analysis = await ask(page, broken);
    await analysis.getByText(/The analysis failed: line 1: KeyError/).waitFor({ timeout: analysisTimeout });
    const programs = server.model.prompts.filter((prompt) => program.test(prompt) && prompt.includes(broken));
    assert.equal(programs.length, 1);
    await accessible(page, "an analysis that failed");
    await shot(page, "analysis-failed");
    await clean(tab);
  });
});
