// Offline mode: the page loads from the cache and says that the server is unreachable.
import assert from "node:assert/strict";
import { before, describe } from "node:test";
import { accessible, clean, openTab, shot } from "./browser.mjs";
import { sharedShop } from "./servers.mjs";
import { test } from "./suite.mjs";

const question = "How many reviews are there?";

describe("offline", () => {
  let server;
  before(async () => {
    server = await sharedShop([{ question, replies: ["SELECT count(*) AS reviews FROM reviews"] }]);
  });

  test("loads offline from a cache that holds no user data", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
    await page.reload();
    await page.getByLabel("Your question").fill(question);
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.getByText("How it was answered").waitFor();
    await server.kill();
    await page.reload();
    await page.getByText("The server is offline.").waitFor();
    await page.getByRole("link", { name: "Schema" }).click();
    await page.getByRole("heading", { name: "Schema" }).waitFor();
    await accessible(page, "the page without its server");
    await shot(page, "offline");
    const cached = await page.evaluate(async () => {
      const names = await caches.keys();
      const opened = await Promise.all(names.map((name) => caches.open(name)));
      return (await Promise.all(opened.map((cache) => cache.keys()))).flat().map((request) => new URL(request.url).pathname);
    });
    assert.ok(cached.length > 0);
    assert.deepEqual(cached.filter((path) => path.startsWith("/v1") || path.startsWith("/metrics")), []);
    await server.restart();
    await page.getByRole("button", { name: "Try again" }).first().click();
    await page.getByText("The server is offline.").waitFor({ state: "hidden" });
    await page.getByText("5 tables", { exact: true }).waitFor();
    await clean(tab);
  });
});
