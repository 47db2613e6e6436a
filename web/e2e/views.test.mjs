// Views other than Ask: content and accessibility.
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { accessible, clean, openTab, phone, shot, wide } from "./browser.mjs";
import { start } from "./servers.mjs";
import { pairs, test } from "./suite.mjs";
import { waitUntil } from "./timing.mjs";

const script = [
  { question: "How many products", replies: ["SELECT count(*) AS products FROM products"] },
  { question: "How many electronics", replies: ["SELECT count(*) AS electronics FROM products WHERE categry = 'Electronics'"] },
  { question: "How many toys", replies: ["SELECT count(*) WITHIN GROUP (ORDER BY price) FROM products", "SELECT count(*) AS toys FROM products WHERE category = 'Toys'"] },
  { question: "Break", replies: [{ status: 500 }] },
];

/** Views with the element that shows that they have loaded. */
const views = {
  ask: (page) => page.getByLabel("Your question"),
  sql: (page) => page.getByLabel("Query", { exact: true }),
  schema: (page) => page.getByText("5 tables", { exact: true }),
  teach: (page) => page.getByText(/^(No|\d+) examples?$/),
  operations: (page) => page.getByRole("heading", { name: "Circuit breakers" }),
};
const layouts = [
  { name: "phone, dark", viewport: phone, dark: true, touch: true },
  { name: "wide, light", viewport: wide },
  { name: "wide, dark", viewport: wide, dark: true },
  { name: "phone, light", viewport: phone, touch: true },
];

describe("views", () => {
  let server;
  before(async () => {
    server = await start({ script, config: { circuit_breaker: { failure_threshold: 1, timeout: "24h", max_timeout: "24h" } } });
  });
  after(async () => {
    await server?.stop();
  });

  test("searches, shows and draws the schema", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(`${server.url}/schema`);
    await page.getByText("5 tables", { exact: true }).waitFor();
    await page.getByLabel("Search tables and columns").fill("quantity");
    await page.getByText("1 of 5 tables").waitFor();
    await page.getByRole("heading", { name: "order_items" }).waitFor();
    await page.getByRole("button", { name: "Show the first 5 rows" }).click();
    await page.getByRole("region", { name: "First rows of order_items" }).getByRole("cell").first().waitFor();
    await shot(page, "schema-table");
    await page.getByRole("button", { name: "references orders.order_id" }).click();
    await page.getByRole("heading", { name: "orders", exact: true }).waitFor();
    await page.getByRole("button", { name: "With diagram" }).click();
    const diagram = page.getByRole("group", { name: /Diagram of the tables/ });
    await diagram.waitFor();
    assert.equal(await diagram.locator("rect").count(), 5);
    const box = () => diagram.locator("svg").getAttribute("viewBox");
    const first = await box();
    await diagram.focus();
    await page.keyboard.press("+");
    await page.keyboard.press("ArrowRight");
    await waitUntil("the diagram has moved", async () => (await box()) !== first);
    await page.keyboard.press("0");
    await waitUntil("the diagram fits the view", async () => (await box()) === first);
    await shot(page, "schema-diagram");
    await page.getByRole("button", { name: "Ask about this table" }).click();
    await page.waitForURL("**/ask");
    await clean(tab);
  });

  test("adds, edits and deletes examples", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(`${server.url}/teach`);
    await page.getByText("No examples").waitFor();
    await page.getByRole("button", { name: "Add an example" }).click();
    await page.getByLabel("Question").fill("How many reviews are there?");
    await page.getByLabel("Query").fill("SELECT count(*) FROM reviews");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("1 example", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Edit: How many reviews are there?" }).click();
    await page.getByLabel("Query").fill("SELECT count(*) AS reviews FROM reviews");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("AS reviews").waitFor();
    await shot(page, "teach");
    await page.getByRole("button", { name: "Delete: How many reviews are there?" }).click();
    await page.getByText("No examples").waitFor();
    assert.equal((await server.request("/v1/examples", { question: "How many orders are there?", sql: "SELECT count(*) FROM orders" })).status, 201);
    await clean(tab);
  });

  test("shows metrics, costs and the events of a trace", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    assert.equal((await server.request("/v1/ask", { question: "How many products are there?" })).status, 200);
    assert.equal((await server.request("/v1/ask", { question: "How many electronics are there?" })).status, 200);
    assert.equal((await server.request("/v1/ask", { question: "How many toys are there?" })).status, 200);
    await page.goto(`${server.url}/operations`);
    await page.getByRole("rowheader", { name: /database:sqlite/ }).waitFor();
    await page.getByRole("rowheader", { name: /scripted/ }).first().waitFor();
    await page.getByRole("region", { name: "Failed queries by error type" }).getByRole("rowheader").first().waitFor();
    await shot(page, "operations");
    await page.getByLabel("Search").fill("electronics");
    await page.getByRole("button", { name: /How many electronics/ }).click();
    await page.getByText("repaired", { exact: true }).click();
    await page.getByText(/"after": "SELECT/).waitFor();
    await accessible(page, "a trace");
    await page.getByText(/"after": "SELECT/).scrollIntoViewIfNeeded();
    await shot(page, "operations-trace");
    await clean(tab);
  });

  test("resets an open circuit breaker", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await server.request("/v1/ask", { question: "Break" });
    await page.goto(`${server.url}/operations`);
    const row = page.getByRole("row").filter({ hasText: "model:" });
    await row.getByText("open", { exact: true }).waitFor();
    await shot(page, "operations-breaker");
    await row.getByRole("button", { name: /Reset/ }).click();
    await row.getByText("closed", { exact: true }).waitFor();
    await clean(tab);
  });

  for (const layout of layouts) {
    // Earlier tests have filled the views: an example, traces, a circuit breaker that was open.
    test(`every view is accessible: ${layout.name}`, async (t) => {
      const tab = await openTab({ t, ...layout });
      const { page } = tab;
      for (const [view] of pairs(Object.keys(views), layouts).filter(([, one]) => one === layout)) {
        await page.goto(`${server.url}/${view}`);
        await views[view](page).waitFor();
        await page.waitForLoadState("networkidle");
        if (view === "schema") await page.getByRole("button", { name: "With diagram" }).click();
        await accessible(page, `${view} (${layout.name})`);
        const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(across <= 0, `${view} is ${across} px wider than the screen (${layout.name})`);
        await shot(page, `view-${view}-${layout.name.replace(", ", "-")}`);
      }
      await clean(tab);
    });
  }
});
