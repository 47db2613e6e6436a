// Main path: a question, its progress, the rows, the chart and the evidence.
import assert from "node:assert/strict";
import { before, describe } from "node:test";
import { accessible, clean, openTab, phone, shot } from "./browser.mjs";
import { sharedShop } from "./servers.mjs";
import { isFull, test } from "./suite.mjs";

const byCategory = "How many products are there in each category?";
const onPhone = "How many products does each category have?";
const misspelt = "How many products are electronics?";
const slow = "Which customers have never ordered anything?";
const ambiguous = "List all the names";
const hopeless = "What is the mood of the warehouse?";

const products = "SELECT category, count(*) AS products FROM products GROUP BY category ORDER BY products DESC";

// The model waits until the test has seen that generation has started.
let begin;
const begun = new Promise((resolve) => {
  begin = resolve;
});
const never = new Promise(() => undefined);
const script = [
  { question: byCategory, replies: [{ text: products, after: begun, pace: 40 }] },
  { question: onPhone, replies: [products] },
  { question: misspelt, replies: ["SELECT count(*) AS electronics FROM products WHERE categry = 'Electronics'"] },
  { question: slow, replies: [{ text: "SELECT name FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders)", after: never }] },
  { question: hopeless, replies: [{ status: 500, text: "the model is on fire" }] },
  { question: ambiguous, replies: ["SELECT name FROM customers, products"] },
  { question: "How many orders are there?", replies: ["SELECT count(*) AS orders FROM orders"] },
];

describe("asking", () => {
  let server;
  before(async () => {
    server = await sharedShop(script);
  });

  async function ask(page, question) {
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
  }
  /** Returns the element of a question. */
  const turn = (page, question) => page.getByRole("article", { name: question });

  test("shows the stages of a question, then rows and a chart", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await ask(page, byCategory);
    const stages = turn(page, byCategory).getByRole("list", { name: "Steps to the answer" });
    await stages.getByText("Writing a query…").waitFor();
    await shot(page, "ask-stages");
    begin();
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
  });

  test("shows the diff and the fixes of a repaired query", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await ask(page, misspelt);
    const answer = turn(page, misspelt);
    await answer.getByText("How it was answered").click();
    await answer.getByRole("heading", { name: "Repairs" }).waitFor();
    await answer.locator("del", { hasText: "categry" }).first().waitFor();
    await answer.locator("ins", { hasText: "category" }).first().waitFor();
    await accessible(page, "a repaired answer");
    await shot(page, "ask-repaired");
    await clean(tab);
  });

  test("cancels a question and answers the next one", async (t) => {
    const tab = await openTab({ t });
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
  });

  test("reports a failure of the model", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await ask(page, hopeless);
    await turn(page, hopeless).getByRole("alert").waitFor();
    await accessible(page, "a failure");
    await shot(page, "ask-failed");
    await clean(tab);
  });

  test("answers a clarifying question with the keyboard", async (t) => {
    const tab = await openTab({ t, viewport: phone, dark: true });
    const { page } = tab;
    await page.goto(server.url);
    await ask(page, ambiguous);
    const clarify = turn(page, ambiguous).getByRole("group", { name: "Which name: customers.name or products.name?" });
    await clarify.waitFor();
    await page.getByRole("status").getByText("Which name: customers.name or products.name?").waitFor();
    for (const label of ["customers.name", "products.name"]) {
      const preview = clarify.getByRole("group", { name: `Preview of ${label}` });
      assert.equal(await preview.getByRole("row").count(), 4, `the head and three rows of ${label}`);
    }
    await accessible(page, "a clarifying question");
    const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(across <= 0, `the clarifying question is ${across} px wider than the phone`);
    await shot(page, "ask-clarify");
    await clarify.getByRole("button", { name: "products.name" }).press("Enter");
    const answer = page.getByRole("article", { name: `${ambiguous} (products.name)` });
    await answer.getByRole("grid").getByText('Laptop 14"').first().waitFor();
    assert.ok(await answer.evaluate((element) => element === document.activeElement), "the focus follows to the answer");
    await answer.getByText("Your choice: products.name").waitFor();
    await clarify.getByRole("listitem").filter({ hasText: "Chosen" }).getByRole("button", { name: "products.name" }).waitFor();
    await shot(page, "ask-chosen");
    await clean(tab);
  });

  test("the main path works with the keyboard only", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    const { keyboard } = page;
    await page.goto(server.url);
    // The question box has the initial focus, and "/" focuses it from anywhere.
    await page.locator("#question:focus").waitFor();
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
        if (focused.text.startsWith(wanted)) return assert.ok(focused.seen, `the focus on "${wanted}" is not visible`);
      }
      assert.fail(`Tab does not reach "${wanted}"`);
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
  });

  test("answers fit a phone and the dark theme", async (t) => {
    // Other tests cover answers in the light theme, and other views on a phone in the light theme.
    for (const dark of isFull ? [false, true] : [true]) {
      const tab = await openTab({ t, viewport: phone, dark, touch: true });
      const { page } = tab;
      await page.goto(server.url);
      await ask(page, onPhone);
      await turn(page, onPhone).locator("canvas").waitFor();
      await turn(page, onPhone).getByText("How it was answered").click();
      await accessible(page, `an answer on a phone, ${dark ? "dark" : "light"}`);
      const across = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(across <= 0, `the answer is ${across} px wider than the phone`);
      await shot(page, `ask-phone-${dark ? "dark" : "light"}`);
      await clean(tab);
    }
  });
});
