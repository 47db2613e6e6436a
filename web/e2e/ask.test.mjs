// The main path: a question, what is done for it, the rows, the picture, and why the answer can be trusted.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { accessible, clean, open, phone, shot } from "./browser.mjs";
import { start } from "./servers.mjs";

const byCategory = "How many products are there in each category?";
const misspelt = "How many products are electronics?";
const slow = "Which customers have never ordered anything?";
const hopeless = "What is the mood of the warehouse?";

const script = [
  { question: byCategory, replies: [{ text: "SELECT category, count(*) AS products FROM products GROUP BY category ORDER BY products DESC", wait: 700, pace: 40 }] },
  { question: misspelt, replies: ["SELECT count(*) AS electronics FROM products WHERE categry = 'Electronics'"] },
  { question: slow, replies: [{ text: "SELECT name FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)", wait: 60_000 }] },
  { question: hopeless, replies: [{ status: 500, text: "the model is on fire" }] },
  { question: "How many orders are there?", replies: ["SELECT count(*) AS orders FROM orders"] },
];

let server, chromium;
before(async () => {
  server = await start({ script, args: ["--no-fallback"] });
  chromium = await open();
});
after(async () => {
  await chromium?.close();
  await server?.stop();
});

async function ask(page, question) {
  await page.getByLabel("Your question").fill(question);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
}
/** The part of the page that belongs to one question. */
const turn = (page, question) => page.getByRole("article", { name: question });

test("C07: a question shows its stages, then rows and a chart", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(server.url);
  await ask(page, byCategory);
  const stages = turn(page, byCategory).getByRole("list", { name: "How the answer came about" });
  await stages.getByText("Writing a query…").waitFor();
  await shot(page, "ask-stages");
  const grid = turn(page, byCategory).getByRole("grid");
  await grid.waitFor();
  assert.ok((await grid.getByRole("gridcell").count()) >= 8);
  const canvas = turn(page, byCategory).locator("canvas");
  await canvas.waitFor();
  const { width, height } = await canvas.boundingBox();
  assert.ok(width > 200 && height > 80, `the chart is ${width} by ${height}`);
  await accessible(page, "an answer with a chart");
  await shot(page, "ask-chart");
  await clean(tab);
  await tab.context.close();
});

test("Q14: a query that was mended shows what changed, why, and how sure that is", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(server.url);
  await ask(page, misspelt);
  const answer = turn(page, misspelt);
  await answer.getByText("How it was answered").click();
  await answer.getByRole("heading", { name: "What was mended" }).waitFor();
  await answer.locator("del", { hasText: "categry" }).first().waitFor();
  await answer.locator("ins", { hasText: "category" }).first().waitFor();
  await accessible(page, "a mended answer");
  await shot(page, "ask-mended");
  await clean(tab);
  await tab.context.close();
});

test("a question is cancelled by its button, and the next one is answered", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(server.url);
  await ask(page, slow);
  await turn(page, slow).getByText("Writing a query…").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await turn(page, slow).getByText("You cancelled this question.").waitFor();
  await shot(page, "ask-cancelled");
  await ask(page, misspelt);
  await turn(page, misspelt).getByText("How it was answered").waitFor();
  await clean(tab);
  await tab.context.close();
});

test("a failure of the model is told in words", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  await page.goto(server.url);
  await ask(page, hopeless);
  await turn(page, hopeless).getByRole("alert").waitFor({ timeout: 60_000 });
  await accessible(page, "a failure");
  await shot(page, "ask-failed");
  await clean(tab);
  await tab.context.close();
});

test("the main path needs no pointer", async () => {
  const tab = await chromium.tab();
  const { page } = tab;
  const { keyboard } = page;
  await page.goto(server.url);
  await page.getByLabel("Your question").waitFor();
  // The question box has the focus already, and "/" brings it back from anywhere.
  await keyboard.type("How many orders are there?");
  await keyboard.press("Enter");
  const answer = turn(page, "How many orders are there?");
  await answer.getByText("How it was answered").waitFor();
  const reach = async (wanted) => {
    for (let presses = 0; presses < 80; presses += 1) {
      await keyboard.press("Tab");
      const focused = await page.evaluate(() => {
        const element = document.activeElement ?? document.body;
        const text = element === document.body ? "" : (element.getAttribute("aria-label") ?? element.textContent ?? "");
        return { text: text.trim(), seen: getComputedStyle(element).outlineStyle !== "none" };
      });
      if (focused.text.startsWith(wanted)) return assert.ok(focused.seen, `the focus on "${wanted}" cannot be seen`);
    }
    assert.fail(`Tab does not come to "${wanted}"`);
  };
  await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
  await reach("Skip to the content");
  await keyboard.press("Enter");
  await reach("How it was answered");
  await keyboard.press("Enter");
  await answer.getByRole("region", { name: "The query" }).waitFor();
  await shot(page, "ask-keyboard");
  await keyboard.press("Escape");
  await page.evaluate(() => document.activeElement instanceof HTMLElement && document.activeElement.blur());
  await keyboard.press("/");
  await page.locator("#question:focus").waitFor();
  await clean(tab);
  await tab.context.close();
});

test("answers fit a phone, and stay readable in the dark", async () => {
  for (const dark of [false, true]) {
    const tab = await chromium.tab({ viewport: phone, dark, touch: true });
    const { page } = tab;
    await page.goto(server.url);
    await ask(page, byCategory);
    await turn(page, byCategory).locator("canvas").waitFor();
    await turn(page, byCategory).getByText("How it was answered").click();
    await accessible(page, `an answer on a phone, ${dark ? "dark" : "light"}`);
    const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(across <= 0, `the answer is ${across} px wider than the phone`);
    await shot(page, `ask-phone-${dark ? "dark" : "light"}`);
    await clean(tab);
    await tab.context.close();
  }
});
