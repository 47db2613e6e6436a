// Sign-in: rejects wrong keys, accepts valid ones, and applies roles.
import assert from "node:assert/strict";
import { after, before, describe } from "node:test";
import { accessible, clean, openTab, phone, shot } from "./browser.mjs";
import { start } from "./servers.mjs";
import { test } from "./suite.mjs";

const config = {
  server: {
    auth: { keys_file: "keys.jsonl" },
    roles: { analyst: { policy: { deny_tables: ["reviews"] }, max_rows: 1000 }, admin: { admin: true } },
    default_role: "analyst",
  },
};

describe("sign-in", () => {
  let server;
  before(async () => {
    server = await start({ config, keys: [{ name: "ada", role: "analyst" }, { name: "root", role: "admin" }] });
  });
  after(async () => {
    await server?.stop();
  });

  async function signIn(page, key) {
    await page.getByLabel("API key or token").fill(key);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  test("rejects a wrong key and does not store it", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    await page.goto(server.url);
    await signIn(page, "qm_0000000000000000_wrong");
    await page.getByText("The key is unknown").waitFor();
    assert.equal(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage })).then((stored) => stored.includes("wrong")), false);
    await accessible(page, "signing in");
    await shot(page, "sign-in-rejected");
    await clean(tab);
  });

  test("an analyst sees permitted tables only and signs out", async (t) => {
    const tab = await openTab({ t });
    const { page } = tab;
    const addresses = [];
    page.on("request", (request) => addresses.push(request.url()));
    await page.goto(`${server.url}/schema`);
    await signIn(page, server.secrets[0]);
    await page.getByText("4 tables", { exact: true }).waitFor();
    assert.equal(await page.getByText("reviews").count(), 0);
    assert.equal(await page.getByRole("link", { name: "Operations" }).count(), 0);
    await page.reload();
    await page.getByText("4 tables", { exact: true }).waitFor();
    assert.ok(!addresses.some((address) => address.includes("qm_")), "a key was part of a URL");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key or token").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await clean(tab);
  });

  test("an administrator sees the operations view", async (t) => {
    const tab = await openTab({ t, viewport: phone, dark: true, touch: true });
    const { page } = tab;
    await page.goto(`${server.url}/operations`);
    await page.getByLabel("API key or token").waitFor();
    await shot(page, "sign-in-phone");
    await accessible(page, "signing in on a phone in the dark");
    await signIn(page, server.secrets[1]);
    await page.getByRole("heading", { name: "Circuit breakers" }).waitFor();
    await clean(tab);
  });
});
