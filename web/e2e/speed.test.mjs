// Size of the first load, and scrolling of 100,000 rows. Full runs print times without asserting them, because they depend on
// the machine.
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { browser, clean, openTab, shot } from "./browser.mjs";
import { start } from "./servers.mjs";
import { isFull, test } from "./suite.mjs";

const rows = 100_000;
/** Keep in step with `rowHeight` of the table. */
const rowHeight = 30;
const question = "Show every measurement";
const make = `
db.execute("CREATE TABLE measurements (id INTEGER PRIMARY KEY, city TEXT, taken TEXT, value REAL, note TEXT)")
db.executemany("INSERT INTO measurements (city, taken, value, note) VALUES (?, ?, ?, ?)", (("city %d" % (i % 97), "2024-%02d-%02d" % (i % 12 + 1, i % 28 + 1), i * 0.37 % 100, "note %d" % i) for i in range(${rows})))
`;

describe("first load and long tables", () => {
  let server;
  before(async () => {
    server = await start({ make, script: [{ question, replies: ["SELECT id, city, taken, value, note FROM measurements"] }], config: { limits: { rows } } });
  });
  after(async () => {
    await server?.stop();
  });

  test("the first load is small", async (t) => {
    const tab = await openTab({ t });
    const { page, context } = tab;
    const protocol = await context.newCDPSession(page);
    await protocol.send("Network.enable");
    const sent = new Map();
    const addresses = new Map();
    protocol.on("Network.responseReceived", ({ requestId, response }) => addresses.set(requestId, response.url));
    protocol.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => sent.set(requestId, encodedDataLength));
    const began = Date.now();
    await page.goto(server.url);
    await page.getByLabel("Your question").waitFor();
    const usable = Date.now() - began;
    await page.waitForLoadState("networkidle");
    const files = [...sent].map(([id, bytes]) => [addresses.get(id) ?? "", bytes]).filter(([address]) => !address.includes("/v1/"));
    const bytes = files.reduce((sum, [, size]) => sum + size, 0);
    const painted = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
    if (isFull) console.log(`first load: ${(bytes / 1000).toFixed(1)} kB over the wire in ${files.length} files, painted after ${Math.round(painted)} ms, the question box is there after ${usable} ms`);
    assert.ok(bytes > 5_000 && bytes <= 250_000, `${bytes} bytes`);
    assert.ok(!files.some(([address]) => address.includes("pyodide")), "Python was fetched before it was needed");
    await clean(tab);
  });

  test("scrolls 100,000 rows", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    const grid = page.getByRole("grid");
    await grid.waitFor();
    assert.equal(await grid.getAttribute("aria-rowcount"), String(rows + 1));
    await grid.scrollIntoViewIfNeeded();
    const trace = isFull && (await startTrace(page));
    // Scroll in small steps with the wheel, and in jumps like the scroll bar.
    await grid.hover();
    for (let turn = 0; turn < (isFull ? 60 : 10); turn += 1) {
      await page.mouse.wheel(0, 1_500);
      if (isFull) await page.waitForTimeout(16);
    }
    await page.waitForFunction(() => document.querySelector('[role="grid"]').scrollTop > 0);
    await rightRows(page);
    for (const share of [0.2, 0.9, 0.5, 1, 0]) {
      await grid.evaluate((element, at) => (element.scrollTop = element.scrollHeight * at), share);
      await rightRows(page);
    }
    if (trace) printTasks(await trace.stop());
    const cells = await grid.getByRole("gridcell").count();
    assert.ok(cells > 0 && cells < 2_000, `${cells} cells are in the DOM at once`);

    await grid.evaluate((element) => (element.scrollTop = element.scrollHeight));
    await page.getByText(`note ${rows - 1}`, { exact: true }).waitFor();
    await shot(page, "rows-end");
    await clean(tab);
  });
});

/** Waits until the first and the last visible row are rendered with their own content. */
function rightRows(page) {
  return page.waitForFunction((height) => {
    const grid = document.querySelector('[role="grid"]');
    const first = Math.floor(grid.scrollTop / height);
    // The header covers one row, and the last one may be partly visible.
    const last = Math.floor((grid.scrollTop + grid.clientHeight) / height) - 3;
    return [first, last].every((row) => grid.querySelector(`[data-row="${row}"]`)?.lastElementChild?.textContent === `note ${row}`);
  }, rowHeight);
}

/** Starts a browser trace once the page is idle. */
async function startTrace(page) {
  await page.waitForTimeout(1_000);
  const recording = await browser();
  await recording.startTracing(page, { categories: ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel"] });
  return { stop: async () => JSON.parse((await recording.stopTracing()).toString()).traceEvents };
}

/** Prints the durations of tasks on the main thread. */
function printTasks(events) {
  const main = mainThread(events);
  const ran = events.filter((event) => event.name === "RunTask" && event.ph === "X" && main(event));
  const tasks = ran.map((event) => event.dur / 1000);
  // On a busy machine, wall-clock durations include waiting for a processor.
  const worked = ran.map((event) => (event.tdur ?? event.dur) / 1000);
  const over = (times, ms) => times.filter((time) => time > ms).length;
  assert.ok(tasks.length > 100, `the trace has only ${tasks.length} tasks`);
  console.log(
    `scrolling ${rows} rows: ${tasks.length} tasks, the longest ${Math.max(...tasks).toFixed(1)} ms (${Math.max(...worked).toFixed(1)} ms of a processor), over 50 ms ${over(tasks, 50)} (${over(worked, 50)}), over 100 ms ${over(tasks, 100)} (${over(worked, 100)})`,
  );
}

/** Returns a predicate for events on the main thread of the page. */
function mainThread(events) {
  const threads = new Set(events.filter((event) => event.name === "thread_name" && event.args?.name === "CrRendererMain").map((event) => `${event.pid} ${event.tid}`));
  const pages = new Set(events.filter((event) => /^(Layout|UpdateLayoutTree|Paint|PrePaint)$/.test(event.name)).map((event) => `${event.pid} ${event.tid}`));
  return (event) => threads.has(`${event.pid} ${event.tid}`) && pages.has(`${event.pid} ${event.tid}`);
}
