// A whole Querymend for one test: a database, a scripted model, and the server with the page, all in a folder of their own.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const binary = path.resolve(process.env.QUERYMEND_BIN ?? path.join(here, "../../target/debug/querymend"));
const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "querymend");

/** Where `scripts/pyodide.sh` put what analyses in the browser compute with. */
export const pyodide = process.env.QUERYMEND_PYODIDE ?? path.join(cache, "pyodide");

/**
 * Starts all of it. `script` is what the model says; `config` is `querymend.yaml`; `make` builds another database than the shop, as
 * lines of Python with a connection named `db`; for each of `keys` the server gets a key, which is found in `secrets`.
 */
export async function start({ script = [], config = "", make = "", keys = [], args = [] } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "querymend-page."));
  const log = path.join(folder, "serve.log");
  const environment = { ...process.env, HOME: folder, XDG_STATE_HOME: `${folder}/state`, XDG_CONFIG_HOME: `${folder}/config`, RUST_LOG: "warn" };
  const call = (...words) => execFileSync(binary, words, { cwd: folder, env: environment, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  let server = null;
  let model = null;

  const begin = async (port) => {
    // A fresh log: where an earlier server listened says nothing about this one.
    const output = fs.openSync(log, "w");
    server = spawn(binary, ["serve", "--db", "shop.db", "--bind", `127.0.0.1:${port}`, "--model", model.name, ...args], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", output, output],
    });
    fs.closeSync(output);
    return listening(server, log);
  };
  const end = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
  };
  // Whatever ends the tests, no server is left behind.
  const last = () => server?.kill("SIGKILL");
  process.on("exit", last);
  const stop = async () => {
    await end();
    await model?.stop();
    process.off("exit", last);
    fs.rmSync(folder, { recursive: true, force: true });
  };

  try {
    if (make) execFileSync("python3", ["-c", `import sqlite3\ndb = sqlite3.connect("shop.db")\n${make}\ndb.commit()`], { cwd: folder });
    else call("demo", "shop.db");
    const secrets = keys.map(({ name, role }) => call("key", "new", name, "--role", role, "--keys", "keys.jsonl").trim().split("\n").at(-1));
    if (config) fs.writeFileSync(path.join(folder, "querymend.yaml"), config);
    model = await startModel(script);
    const url = await begin(0);
    const page = await fetch(url);
    if (page.status !== 200) throw new Error(`${binary} has no page in it: run scripts/page.sh, and build it again`);
    return {
      url,
      model,
      secrets,
      /** As if the machine behind the page were gone; and back again at the same address. */
      away: end,
      back: () => begin(new URL(url).port),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
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
