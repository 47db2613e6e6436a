// Feedback on answers becomes examples, and can be undone.
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { accessible, clean, openTab, shot } from "./browser.mjs";
import { sharedShop } from "./servers.mjs";
import { test } from "./suite.mjs";

const right = "How many customers are there?";
const wrong = "How many orders were returned?";
const unseen = "How many reviews have five stars?";
const script = [
  { question: right, replies: ["SELECT count(*) AS customers FROM customers"] },
  { question: wrong, replies: ["SELECT count(*) AS returned FROM orders WHERE status = 'cancelled'"] },
  { question: unseen, replies: ["SELECT count(*) AS five FROM reviews WHERE stars = 5"] },
];

describe("teaching", () => {
  let server, tab, page;
  before(async () => {
    server = await sharedShop(script);
    tab = await openTab();
    page = tab.page;
  });
  after(() => tab?.context.close());

  async function ask(question) {
    await page.goto(`${server.url}/ask`);
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    const turn = page.getByRole("article", { name: question });
    await turn.getByRole("group", { name: "Is this correct?" }).waitFor();
    return turn;
  }

  async function examples() {
    const reply = await server.request("/v1/examples");
    return reply.json().map(({ question, standing, sql }) => ({ question, standing, sql }));
  }

  test("saves a correct answer as an example and undoes it", async () => {
    const turn = await ask(right);
    await turn.getByRole("button", { name: "Correct", exact: true }).click();
    await turn.getByText("Saved as an example.").waitFor();
    assert.equal((await examples()).find((one) => one.question === right)?.standing, "verified");
    await shot(page, "feedback-saved");
    await turn.getByRole("button", { name: "Undo" }).click();
    await turn.getByText("Saved as an example.").waitFor({ state: "hidden" });
    assert.equal((await examples()).some((one) => one.question === right), false);
    await clean(tab);
  });

  test("saves a manual correction of a wrong answer", async () => {
    const turn = await ask(wrong);
    await turn.getByRole("button", { name: "Wrong" }).click();
    await turn.getByLabel("Query", { exact: true }).fill("SELECT count(*) AS returned FROM orders WHERE status = 'returned'");
    await accessible(page, "correcting an answer");
    await shot(page, "feedback-wrong");
    await turn.getByRole("button", { name: "Save" }).click();
    await turn.getByText("Saved as an example.").waitFor();
    const saved = (await examples()).find((one) => one.question === wrong);
    assert.match(saved.sql, /'returned'/);
    assert.equal(saved.standing, "verified");
    await clean(tab);
  });

  test("unreviewed answers appear in the review queue", async () => {
    await ask(unseen);
    // An answer is stored once the next question of the conversation does not complain about it.
    await page.getByLabel("Your question").fill(right);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.getByRole("article", { name: right }).getByText("How it was answered").waitFor();
    await page.getByRole("link", { name: "Teach" }).click();
    const queue = page.getByRole("region", { name: /examples? to review/ });
    await queue.getByRole("heading", { name: unseen }).waitFor();
    await accessible(page, "the review queue");
    await shot(page, "teach-queue");
    await queue.getByRole("button", { name: `Reject: ${unseen}` }).click();
    await queue.getByRole("heading", { name: unseen }).waitFor({ state: "hidden" });
    assert.equal((await examples()).find((one) => one.question === unseen)?.standing, "rejected");
    await page.getByRole("button", { name: `Approve: ${unseen}` }).click();
    await page.getByRole("listitem").filter({ hasText: unseen }).getByText("approved").waitFor();
    assert.equal((await examples()).find((one) => one.question === unseen)?.standing, "verified");
    await clean(tab);
  });
});
