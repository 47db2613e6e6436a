// Every view that needs no question: it shows what the server knows, and everyone can use it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, clean, open, phone, shot, wide } from "./browser.mjs";
import { start } from "./servers.mjs";

let server, chromium;
before(async () => {
  server = await start({ script: [{ question: "How many products", replies: ["SELECT count(*) AS products FROM products"] }] });
  chromium = await open();
});
after(async () => {
  await chromium?.close();
  await server?.stop();
});

test("the schema is searched, looked into and drawn", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(`${server.url}/schema`);
  await page.getByText("5 tables", { exact: true }).waitFor();
  await page.getByLabel("Search tables and columns").fill("quantity");
  await page.getByText("1 of 5 tables").waitFor();
  await page.getByRole("heading", { name: "order_items" }).waitFor();
  await page.getByRole("button", { name: "Show the first 5 rows" }).click();
  await page.getByRole("region", { name: "The first rows of order_items" }).getByRole("cell").first().waitFor();
  await shot(page, "schema-table");
  await page.getByRole("button", { name: "points at orders.order_id" }).click();
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
  assert.notEqual(await box(), first);
  await page.keyboard.press("0");
  assert.equal(await box(), first);
  await shot(page, "schema-diagram");
  await page.getByRole("button", { name: "Ask about this table" }).click();
  await page.waitForURL("**/ask");
  await clean(tab);
  await tab.context.close();
});

test("examples are added, changed and forgotten", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(`${server.url}/teach`);
  await page.getByText("No examples").waitFor();
  await page.getByRole("button", { name: "Add an example" }).click();
  await page.getByLabel("Question").fill("How many reviews are there?");
  await page.getByLabel("Query").fill("SELECT count(*) FROM reviews");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("1 example", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Change: How many reviews are there?" }).click();
  await page.getByLabel("Query").fill("SELECT count(*) AS reviews FROM reviews");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("AS reviews").waitFor();
  await shot(page, "teach");
  await page.getByRole("button", { name: "Forget: How many reviews are there?" }).click();
  await page.getByText("No examples").waitFor();
  await clean(tab);
  await tab.context.close();
});

test("operations show breakers, figures and costs", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  const asked = await fetch(`${server.url}/v1/ask`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ question: "How many products are there?" }) });
  assert.equal(asked.status, 200);
  await page.goto(`${server.url}/operations`);
  await page.getByRole("rowheader", { name: /database:sqlite/ }).waitFor();
  await page.getByRole("rowheader", { name: /scripted/ }).first().waitFor();
  await shot(page, "operations");
  await clean(tab);
  await tab.context.close();
});

for (const [size, viewport] of Object.entries({ wide, phone })) {
  for (const dark of [false, true]) {
    test(`everyone can use every view: ${size}, ${dark ? "dark" : "light"}`, async () => {
      const tab = await chromium.tab({ viewport, dark, touch: size === "phone" });
      for (const view of ["ask", "sql", "schema", "teach", "operations"]) {
        await tab.page.goto(`${server.url}/${view}`);
        await tab.page.locator("main > *").first().waitFor();
        await tab.page.waitForLoadState("networkidle");
        if (view === "schema") await tab.page.getByRole("button", { name: "With diagram" }).click();
        await accessible(tab.page, `${view} (${size}, ${dark ? "dark" : "light"})`);
        const across = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(across <= 0, `${view} is ${across} px wider than the ${size}`);
        await shot(tab.page, `view-${view}-${size}-${dark ? "dark" : "light"}`);
      }
      await clean(tab);
      await tab.context.close();
    });
  }
}
