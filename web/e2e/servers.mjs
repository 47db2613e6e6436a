// A whole Querymend for one test: a database, a scripted model, and the server with the page, all in a folder of their own.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";
import { startDist } from "./dist-server.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const binary = path.resolve(process.env.QUERYMEND_BIN ?? path.join(here, "../../target/release/querymend"));

/** Whether the server knows the routes that the page came with; an older one is only good for some tests. */
export const pyodide = process.env.QUERYMEND_PYODIDE ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "querymend/pyodide");

/**
 * Starts all of it. `script` is what the model says, `config` is more of `querymend.yaml`, `make` builds another database than the
 * shop, as lines of Python with a connection named `db`.
 */
export async function start({ script = [], config = "", make = "", keys = [], args = [], port = 0 } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "querymend-page."));
  const environment = { ...process.env, HOME: folder, XDG_STATE_HOME: `${folder}/state`, XDG_CONFIG_HOME: `${folder}/config`, RUST_LOG: "warn" };
  const call = (...words) => execFileSync(binary, words, { cwd: folder, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (make) execFileSync("python3", ["-c", `import sqlite3\ndb = sqlite3.connect("shop.db")\n${make}\ndb.commit()`], { cwd: folder });
  else call("demo", "shop.db");
  const secrets = keys.map(({ name, role }) => call("key", "new", name, "--role", role, "--keys", "keys.jsonl").trim().split("\n").at(-1));
  if (config) fs.writeFileSync(path.join(folder, "querymend.yaml"), config);
  const model = await startModel(script);

  let server;
  let address;
  const begin = async (at) => {
    // A fresh log: where an earlier server listened says nothing about this one.
    const log = fs.openSync(path.join(folder, "serve.log"), "w");
    server = spawn(binary, ["serve", "--db", "shop.db", "--bind", `127.0.0.1:${at}`, "--model", model.name, ...args], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", log, log],
    });
    address = await listening(server, path.join(folder, "serve.log"));
  };
  await begin(port);
  const dist = process.env.QUERYMEND_PAGE === "dist" ? await startDist(() => address, pyodide) : null;

  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
  };
  return {
    url: dist?.url ?? address,
    folder,
    model,
    secrets,
    log: () => fs.readFileSync(path.join(folder, "serve.log"), "utf8"),
    /** As if the machine behind the page were gone; and back again at the same address. */
    away: async () => {
      await end();
      dist?.hide(true);
    },
    back: async () => {
      dist?.hide(false);
      await begin(new URL(address).port);
    },
    stop: async () => {
      await end();
      await dist?.stop();
      await model.stop();
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function listening(server, log) {
  for (let tries = 0; tries < 300; tries += 1) {
    const said = fs.readFileSync(log, "utf8");
    const found = /listening at (http:\S+)/.exec(said);
    if (found) return found[1];
    if (server.exitCode !== null) throw new Error(`the server did not start:\n${said}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the server does not listen");
}
