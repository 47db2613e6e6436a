// XSS: values, identifiers, model replies and rules are rendered as text and never executed.
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { clean, openTab, shot } from "./browser.mjs";
import { injected, kindOf, payloads } from "./payloads.mjs";
import { start } from "./servers.mjs";
import { oneOfEachKind, test } from "./suite.mjs";

const literal = (text) => `'${text.replaceAll("'", "''")}'`;
const name = (text) => `"${text.replaceAll('"', '""')}"`;
const inCells = "Show me the hostile cells";
const inNames = "Show me the cells under hostile names";
const inChat = "Talk to me";
const inDrafts = "Write something odd";
const inRepair = "Show me the odd cells";
const inChart = "Draw the hostile names";
const perName = 12;
// Every payload occurs in a cell, in a model reply and in a rule. The lists below are tested one by one.
const tables = oneOfEachKind(payloads.slice(0, 10).map((one, index) => [one, payloads.at(-1 - index)]), (both) => both.map(kindOf));
const taught = oneOfEachKind(payloads.slice(0, 6), (one) => [kindOf(one)]);

// Tables and columns are named after payloads too.
const make = `
import json
payloads, tables = json.loads(r'''${JSON.stringify([payloads, tables]).replaceAll("'", "\\u0027")}''')
quote = lambda text: '"' + text.replace('"', '""') + '"'
db.execute("CREATE TABLE cells (id INTEGER PRIMARY KEY, value TEXT)")
db.executemany("INSERT INTO cells (value) VALUES (?)", [(one,) for one in payloads])
for index, (one, other) in enumerate(tables):
    db.execute(f"CREATE TABLE {quote('t' + str(index) + ' ' + one)} (id INTEGER PRIMARY KEY, {quote(one)} TEXT, {quote('c ' + other)} TEXT REFERENCES cells(id))")
    db.execute(f"INSERT INTO {quote('t' + str(index) + ' ' + one)} VALUES (1, ?, ?)", (one, one))
`;

/** Query of an unknown table. It can be repaired only if one of `tables` is named after the same payload. */
const draft = ([one]) => `SELECT ${literal(one)} AS x, ${name(`no ${one}`)} FROM ${name(`none ${one}`)}`;
const script = [
  { question: inCells, replies: ["SELECT id, value FROM cells ORDER BY id"] },
  { question: inNames, replies: [`SELECT ${payloads.slice(0, perName).map((one) => `1 AS ${name(one)}`).join(", ")} FROM cells LIMIT 3`] },
  { question: inChart, replies: [`SELECT value AS ${name(payloads[0])}, id AS ${name(payloads[1])} FROM cells WHERE id <= 20`] },
  { question: inChat, replies: [payloads.join("\n\n")] },
  { question: inDrafts, replies: tables.slice(0, 2).map(draft) },
  { question: inRepair, replies: [draft(tables[2])] },
];

describe("hostile content", () => {
  let server;
  before(async () => {
    server = await start({ script, make, args: ["--no-fallback"] });
  });
  after(async () => {
    await server?.stop();
  });

  /** Asserts that no payload ran, added elements or sent requests to other hosts. */
  async function harmless(tab, requests, what) {
    await settled(tab.page);
    assert.equal(await tab.page.evaluate(() => globalThis.hit), undefined, `${what}: a payload ran`);
    const added = await tab.page.evaluate((selector) => [...document.querySelectorAll(selector)].map((element) => element.outerHTML.slice(0, 120)), injected);
    assert.deepEqual(added, [], `${what}: elements were added`);
    assert.deepEqual(requests.filter((address) => !address.startsWith(server.url) && !/^(data|blob):/.test(address)), [], `${what}: something was sent elsewhere`);
    await clean(tab);
  }

  async function hostileTab(t) {
    const tab = await openTab({ t });
    const requests = [];
    tab.page.on("request", (request) => requests.push(request.url()));
    return { tab, page: tab.page, requests };
  }

  async function ask(page, question) {
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    const turn = page.locator(`article.turn:not(.turn-running)[aria-label="${question}"]`);
    await turn.waitFor();
    return turn;
  }

  test("has at least 30 payloads", () => assert.ok(payloads.length >= 30, String(payloads.length)));

  for (const question of [inCells, inNames, inChart, inChat, inDrafts]) {
    test(`renders payloads as text: ${question}`, async (t) => {
      const { tab, page, requests } = await hostileTab(t);
      await page.goto(server.url);
      const turn = await ask(page, question);
      await turn.locator("details, p, [role=grid]").first().waitFor();
      // Sections may be nested.
      const folds = turn.locator("details:not([open]) > summary");
      for (let depth = 0; depth < 3 && (await folds.count()) > 0; depth += 1) {
        await folds.evaluateAll((all) => all.forEach((summary) => summary.click()));
        await settled(page);
      }
      await harmless(tab, requests, question);
      // The payloads are shown verbatim.
      const shown = await turn.evaluate((element) => element.textContent ?? "");
      const wanted = question === inCells ? payloads.slice(0, 8) : question === inNames ? payloads.slice(0, 3) : question === inChat ? payloads.slice(0, 5) : [];
      for (const one of wanted) assert.ok(shown.includes(one), `${question}: ${one} is not shown as it is`);
      await shot(page, `hostile-${question.toLowerCase().replaceAll(/\W+/g, "-")}`);
      // The same holds for an answer from the history.
      await page.reload();
      await page.getByLabel("Your question").waitFor();
      await harmless(tab, requests, `${question}, in the history`);
    });
  }

  test("renders hostile identifiers as text", async (t) => {
    const { tab, page, requests } = await hostileTab(t);
    await page.goto(`${server.url}/schema`);
    await page.getByText(`${tables.length + 1} tables`, { exact: true }).waitFor();
    await page.getByRole("button", { name: "With diagram" }).click();
    await page.getByText("Diagram as text").click();
    const names = page.locator(".schema-name");
    assert.equal(await names.count(), tables.length + 1);
    for (let index = 0; index <= tables.length; index += 1) {
      await names.nth(index).click();
      await page.getByRole("button", { name: /Show the first/ }).click();
      // One name contains an invisible character, and the server rejects such queries.
      await page.getByRole("region", { name: /First rows of/ }).or(page.getByRole("alert")).first().waitFor();
    }
    await harmless(tab, requests, "the schema");
    await shot(page, "hostile-schema");
  });

  test("renders hostile examples and traces as text", async (t) => {
    const { tab, page, requests } = await hostileTab(t);
    await page.goto(`${server.url}/teach`);
    for (const one of taught) {
      await page.getByRole("button", { name: "Add an example" }).click();
      await page.getByLabel("Question").fill(`About ${one}`);
      await page.getByLabel("Query").fill(`SELECT ${literal(one)} AS ${name(one)} FROM cells`);
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByRole("heading", { name: `About ${one}` }).waitFor();
    }
    await harmless(tab, requests, "teach");
    await page.goto(`${server.url}/operations`);
    await page.getByText(/^(No|\d+) questions?$/).waitFor();
    for (const trace of await page.locator(".operations-trace").all()) {
      await trace.locator(".operations-question").click();
      const steps = trace.locator(".operations-steps summary");
      await steps.first().waitFor();
      await steps.evaluateAll((all) => all.forEach((step) => step.click()));
    }
    await harmless(tab, requests, "operations");
  });

  test("renders hostile rules and error responses as text", async (t) => {
    const { tab, page, requests } = await hostileTab(t);
    const text = payloads.join("\n\n");
    // Rules come from the server, but the page must not trust them either.
    await page.route("**/v1/rules/*", (route) => route.fulfill({ json: { code: payloads[0], title: payloads[1], group: payloads[2], page: `# ${text}\n\n| ${payloads[1]} |\n|---|\n| ${payloads[3]} |\n\n\`\`\`\n${text}\n\`\`\`\n` } }));
    await page.route("**/v1/suggestions*", (route) => route.fulfill({ json: payloads.slice(0, 8) }));
    await page.goto(server.url);
    await page.getByText(payloads[0]).first().waitFor();
    const turn = await ask(page, inRepair);
    await turn.getByText("How it was answered").click();
    await turn.getByRole("button", { name: /The rule/ }).first().click();
    await page.getByText(payloads[1]).last().waitFor();
    await harmless(tab, requests, "a rule");
    await shot(page, "hostile-rule");
    await page.route("**/v1/ask", (route) => route.fulfill({ status: 400, contentType: "application/problem+json", json: { type: "about:blank", title: payloads[0], status: 400, detail: text, code: "bad_request", hint: text } }));
    await page.goto(server.url);
    await ask(page, "Refuse me");
    await page.getByRole("alert").first().waitFor();
    await harmless(tab, requests, "a refusal");
  });
});

/** Waits until effects of payloads would have occurred: a failed image load, and two rendered frames. */
function settled(page) {
  return page.evaluate(
    () =>
      new Promise((resolve) => {
        const image = new Image();
        image.onload = image.onerror = () => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(resolve, 50)));
        image.src = `/no-such-image-${Math.random()}`;
      }),
  );
}
