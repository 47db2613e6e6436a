// SQL editor, and results: sort, filter, change the chart, export.
import assert from "node:assert/strict";
import fs from "node:fs";
import { before, describe } from "node:test";
import { accessible, clean, openTab, shot } from "./browser.mjs";
import { sharedShop } from "./servers.mjs";
import { test } from "./suite.mjs";
import { waitUntil } from "./timing.mjs";

const byCity = "How many customers live in each city?";
const script = [{ question: byCity, replies: ["SELECT city, count(*) AS customers FROM customers GROUP BY city ORDER BY city"] }];

describe("SQL and results", () => {
  let server;
  before(async () => {
    server = await sharedShop(script);
  });

  test("checks a query while typing, applies a fix and runs it", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(`${server.url}/sql`);
    const box = page.getByLabel("Query", { exact: true });
    await box.fill("SELECT name, prise FROM products WHERE category = 'Toys'");
    await page.getByText("1 finding").waitFor();
    await accessible(page, "a query with a finding");
    await shot(page, "sql-finding");
    await page.getByRole("button", { name: /Apply:/ }).first().click();
    await page.getByText("No findings.", { exact: true }).waitFor();
    assert.match(await box.inputValue(), /price/);
    await box.press("Control+Enter");
    const grid = page.getByRole("region", { name: "Result" }).getByRole("grid");
    await grid.waitFor();
    assert.equal(await grid.getAttribute("aria-rowcount"), "9");
    await shot(page, "sql-result");
    await clean(tab);
  });

  test("rejects statements that write", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(`${server.url}/sql`);
    await page.getByLabel("Query", { exact: true }).fill("DELETE FROM products");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").first().waitFor();
    await shot(page, "sql-rejected");
    await clean(tab);
  });

  test("sorts, filters, re-charts and exports rows", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await page.getByLabel("Your question").fill(byCity);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    const turn = page.getByRole("article", { name: byCity });
    const grid = turn.getByRole("grid");
    await grid.waitFor();
    const first = async () => (await grid.getByRole("row").nth(1).getByRole("gridcell").allTextContents()).join(" ");
    const before = await first();
    // Sort ascending, then descending.
    await grid.getByRole("columnheader", { name: /customers/ }).click();
    await grid.getByRole("columnheader", { name: /customers/ }).click();
    await grid.locator('[aria-sort="descending"]').waitFor();
    await waitUntil("the rows are in another order", async () => (await first()) !== before);
    const city = before.split(" ")[0];
    await turn.getByLabel("Filter rows").fill(city);
    await page.waitForFunction((wanted) => document.querySelector('[role="grid"]')?.getAttribute("aria-rowcount") === wanted, "2");
    await turn.getByLabel("Filter rows").fill("");
    await turn.getByLabel("Type").selectOption("line");
    await turn.getByLabel(/Line chart of customers/).locator("canvas").waitFor();
    await accessible(page, "a chart that was changed");
    await shot(page, "result-changed");
    const saved = async (act) => {
      const [download] = await Promise.all([page.waitForEvent("download"), act()]);
      return fs.readFileSync(await download.path());
    };
    const png = await saved(() => turn.getByRole("button", { name: /PNG/ }).click());
    assert.equal(png.subarray(1, 4).toString(), "PNG");
    const svg = await saved(() => turn.getByRole("button", { name: /SVG/ }).click());
    assert.match(svg.toString(), /^<svg/);
    for (const [name, looks] of [
      ["CSV, from the database", (bytes) => bytes.toString().startsWith("city,customers")],
      ["CSV, as shown here", (bytes) => bytes.toString().includes("city,customers")],
      ["Parquet, from the database", (bytes) => bytes.subarray(0, 4).toString() === "PAR1"],
      ["Arrow, from the database", (bytes) => bytes.readUInt32LE(0) === 0xffffffff],
    ]) {
      await turn.getByText("Export", { exact: true }).click();
      const bytes = await saved(() => turn.getByRole("button", { name }).click());
      assert.ok(looks(bytes), `${name}: ${bytes.subarray(0, 40)}`);
      if (await turn.getByRole("button", { name }).isVisible()) await turn.getByText("Export", { exact: true }).click();
    }
    await clean(tab);
  });

  test("finds past conversations", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    const history = page.getByRole("complementary", { name: "History" });
    await history.getByLabel("Search the history").fill("city");
    await history.getByRole("button", { name: new RegExp(byCity.slice(0, 20)) }).first().click();
    await page.getByRole("article", { name: byCity }).waitFor();
    await shot(page, "history");
    await clean(tab);
  });
});
