// Whatever stands in a database, in a model's words or in a rule is shown as text, and does nothing.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { clean, open, shot } from "./browser.mjs";
import { injected, payloads } from "./payloads.mjs";
import { start } from "./servers.mjs";

const literal = (text) => `'${text.replaceAll("'", "''")}'`;
const name = (text) => `"${text.replaceAll('"', '""')}"`;
const inCells = "Show me the hostile cells";
const inNames = "Show me the hostile names";
const inTalk = "Talk to me";
const inDrafts = "Write something odd";
const inChart = "Draw the hostile names";
const perName = 12;

// Tables and columns are named like attacks too, and so are their comments' places: the types.
const make = `
import json
payloads = json.loads(r'''${JSON.stringify(payloads).replaceAll("'", "\\u0027")}''')
quote = lambda text: '"' + text.replace('"', '""') + '"'
db.execute("CREATE TABLE cells (id INTEGER PRIMARY KEY, value TEXT)")
db.executemany("INSERT INTO cells (value) VALUES (?)", [(one,) for one in payloads])
for index, one in enumerate(payloads[:10]):
    db.execute(f"CREATE TABLE {quote('t' + str(index) + ' ' + one)} (id INTEGER PRIMARY KEY, {quote(one)} TEXT, {quote('c ' + payloads[-1 - index])} TEXT REFERENCES cells(id))")
    db.execute(f"INSERT INTO {quote('t' + str(index) + ' ' + one)} VALUES (1, ?, ?)", (one, one))
`;

const script = [
  { question: inCells, replies: ["SELECT id, value FROM cells ORDER BY id"] },
  { question: inNames, replies: [`SELECT ${payloads.slice(0, perName).map((one) => `1 AS ${name(one)}`).join(", ")} FROM cells LIMIT 3`] },
  { question: inChart, replies: [`SELECT value AS ${name(payloads[0])}, id AS ${name(payloads[1])} FROM cells WHERE id <= 20`] },
  { question: inTalk, replies: [payloads.join("\n\n")] },
  { question: inDrafts, replies: payloads.slice(0, 3).map((one) => `SELECT ${literal(one)} AS x, ${name(`no ${one}`)} FROM ${name(`none ${one}`)}`) },
];

let server, chromium;
before(async () => {
  server = await start({ script, make, args: ["--no-fallback"] });
  chromium = await open();
});
after(async () => {
  await chromium?.close();
  await server?.stop();
});

/** Nothing ran, nothing was added, nothing was sent elsewhere. */
async function harmless(tab, requests, what) {
  await tab.page.waitForTimeout(300);
  assert.equal(await tab.page.evaluate(() => globalThis.hit), undefined, `${what}: a payload ran`);
  const added = await tab.page.evaluate((selector) => [...document.querySelectorAll(selector)].map((element) => element.outerHTML.slice(0, 120)), injected);
  assert.deepEqual(added, [], `${what}: elements were added`);
  assert.deepEqual(requests.filter((address) => !address.startsWith(server.url) && !/^(data|blob):/.test(address)), [], `${what}: something was sent elsewhere`);
  await clean(tab);
}

async function hostileTab() {
  const tab = await chromium.tab();
  const requests = [];
  tab.page.on("request", (request) => requests.push(request.url()));
  return { tab, page: tab.page, requests };
}

async function ask(page, question) {
  await page.getByLabel("Your question").fill(question);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("button", { name: "Ask", exact: true }).waitFor({ timeout: 60_000 });
}

test("there are enough of them", () => assert.ok(payloads.length >= 30, String(payloads.length)));

for (const question of [inCells, inNames, inChart, inTalk, inDrafts]) {
  test(`hostile texts are only texts: ${question}`, async () => {
    const { tab, page, requests } = await hostileTab();
    await page.goto(server.url);
    await ask(page, question);
    const turn = page.getByRole("article", { name: question });
    await turn.locator("details, p, [role=grid]").first().waitFor();
    for (const fold of await turn.locator("summary").all()) await fold.click({ timeout: 2_000 }).catch(() => undefined);
    await harmless(tab, requests, question);
    // The text is there, letter by letter.
    const shown = await turn.evaluate((element) => element.textContent ?? "");
    const wanted = question === inCells ? payloads.slice(0, 8) : question === inNames ? payloads.slice(0, 3) : question === inTalk ? payloads.slice(0, 5) : [];
    for (const one of wanted) assert.ok(shown.includes(one), `${question}: ${one} is not shown as it is`);
    await shot(page, `hostile-${question.toLowerCase().replaceAll(/\W+/g, "-")}`);
    // And it is still only text when the answer comes back from the history.
    await page.reload();
    await page.getByLabel("Your question").waitFor();
    await harmless(tab, requests, `${question}, in the history`);
    await tab.context.close();
  });
}

test("hostile names of tables and columns are only names", async () => {
  const { tab, page, requests } = await hostileTab();
  await page.goto(`${server.url}/schema`);
  await page.getByText("11 tables", { exact: true }).waitFor();
  await page.getByRole("button", { name: "With diagram" }).click();
  await page.getByText("The diagram as text").click();
  const names = page.locator(".schema-name");
  for (let index = 0; index < (await names.count()); index += 1) {
    await names.nth(index).click();
    await page.getByRole("button", { name: /Show the first/ }).click();
    // One of the names has a letter that cannot be seen, and the server refuses such queries.
    await page.getByRole("region", { name: /The first rows of/ }).or(page.getByRole("alert")).first().waitFor();
  }
  await harmless(tab, requests, "the schema");
  await shot(page, "hostile-schema");
  await tab.context.close();
});

test("hostile examples and queries are only texts", async () => {
  const { tab, page, requests } = await hostileTab();
  await page.goto(`${server.url}/teach`);
  for (const one of payloads.slice(0, 6)) {
    await page.getByRole("button", { name: "Add an example" }).click();
    await page.getByLabel("Question").fill(`About ${one}`);
    await page.getByLabel("Query").fill(`SELECT ${literal(one)} AS ${name(one)} FROM cells`);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: `About ${one}` }).waitFor();
  }
  await harmless(tab, requests, "teach");
  await page.goto(`${server.url}/operations`);
  await page.getByRole("heading", { name: "Recent questions" }).waitFor();
  for (const question of await page.locator(".operations-question").all()) {
    await question.click();
    await page.locator(".operations-steps summary").first().waitFor();
    for (const step of await page.locator(".operations-steps summary").all()) await step.click();
  }
  await harmless(tab, requests, "operations");
  await tab.context.close();
});

test("hostile rules and refusals are only texts", async () => {
  const { tab, page, requests } = await hostileTab();
  const text = payloads.join("\n\n");
  // Rules are the server's own, but a page that trusts them would trust whoever stands between.
  await page.route("**/v1/rules/*", (route) => route.fulfill({ json: { code: payloads[0], title: payloads[1], group: payloads[2], page: `# ${text}\n\n| ${payloads[1]} |\n|---|\n| ${payloads[3]} |\n\n\`\`\`\n${text}\n\`\`\`\n` } }));
  await page.route("**/v1/suggestions*", (route) => route.fulfill({ json: payloads.slice(0, 8) }));
  await page.goto(server.url);
  await page.getByText(payloads[0]).first().waitFor();
  await ask(page, inDrafts);
  const turn = page.getByRole("article", { name: inDrafts });
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
  await tab.context.close();
});
