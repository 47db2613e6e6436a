// Test servers: a database, a scripted model and `querymend serve`, in a temporary folder.
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startModel } from "./model.mjs";
import { hangTimeout, waitUntil } from "./timing.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const binary = path.resolve(process.env.QUERYMEND_BIN ?? path.join(here, "../../target/debug/querymend"));
const cache = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "querymend");

/** Folder of Pyodide, installed by `scripts/pyodide.sh`. */
export const pyodide = process.env.QUERYMEND_PYODIDE ?? path.join(cache, "pyodide");

/** Disables time limits that a slow machine could exceed; no test waits for one of them. */
const noTimeLimits = {
  budget: { time: "24h" },
  limits: { time: "24h" },
  server: { limits: { requests_per_minute: 0, idle: "24h", stalled: "24h" } },
};

let shared = null;
let shop = null;
after(async () => {
  await (await shared?.catch(() => null))?.stop();
  const file = await shop?.catch(() => null);
  if (file) fs.rmSync(path.dirname(file), { recursive: true, force: true });
});

/** Returns the server that several test files share, and adds `script` to its model. */
export async function sharedShop(script) {
  shared ??= start({ args: ["--no-fallback"] });
  const server = await shared;
  server.model.script.push(...script);
  return server;
}

/**
 * Starts a server. `script` holds the replies of the model; `config` is merged into `querymend.yaml`; `make` creates a database
 * instead of the demo shop, as Python code with a connection named `db`; `keys` are API keys to create, returned in `secrets`.
 */
export async function start({ script = [], config = {}, make = "", keys = [], args = [] } = {}) {
  const folder = temporaryFolder();
  const log = path.join(folder, "serve.log");
  const environment = { ...process.env, HOME: folder, XDG_STATE_HOME: `${folder}/state`, XDG_CONFIG_HOME: `${folder}/config`, RUST_LOG: "warn" };
  const call = (program, ...args) => run(program, args, { cwd: folder, env: environment });
  let server = null;
  let model = null;

  const begin = async (port) => {
    // Truncate the log, which contains the address of an earlier server.
    const output = fs.openSync(log, "w");
    server = spawn(binary, ["serve", "--db", "shop.db", "--bind", `127.0.0.1:${port}`, "--model", model.name, ...args], {
      cwd: folder,
      env: environment,
      stdio: ["ignore", output, output],
    });
    fs.closeSync(output);
    return listening(server, log);
  };
  const tryRestart = async (port) => {
    try {
      await begin(port);
      return true;
    } catch (error) {
      // Another program may have taken the port in the meantime.
      if (!error.message.includes("cannot listen at")) throw error;
      return false;
    }
  };
  const end = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return;
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGKILL");
    await ended;
  };
  // Kill the server even if the tests are aborted.
  const last = () => server?.kill("SIGKILL");
  process.on("exit", last);
  const stop = async () => {
    await end();
    await model?.stop();
    process.off("exit", last);
    fs.rmSync(folder, { recursive: true, force: true });
  };

  try {
    const database = path.join(folder, "shop.db");
    if (make) await call("python3", "-c", `import sqlite3\ndb = sqlite3.connect("shop.db")\n${make}\ndb.commit()`);
    else fs.copyFileSync(await shopDatabase(), database);
    const secrets = [];
    for (const { name, role } of keys) secrets.push((await call(binary, "key", "new", name, "--role", role, "--keys", "keys.jsonl")).trim().split("\n").at(-1));
    fs.writeFileSync(path.join(folder, "querymend.yaml"), yaml(merged(noTimeLimits, config)));
    model = await startModel(script);
    const url = await begin(0);
    const page = await request(url, "/");
    if (page.status !== 200) throw new Error(`${binary} was built without the page: run scripts/page.sh and rebuild it`);
    return {
      url,
      model,
      secrets,
      /** Sends a request to the server; a POST if there is a body. */
      request: (where, body) => request(url, where, body),
      /** Returns what the server has logged. */
      log: () => fs.readFileSync(log, "utf8"),
      /** Kills the server, or restarts it at the same address. */
      kill: end,
      restart: () => waitUntil("the server listens at its old address", () => tryRestart(new URL(url).port)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the path of the demo database, which is created once and copied for each server. */
function shopDatabase() {
  shop ??= (async () => {
    const folder = temporaryFolder();
    await run(binary, ["demo", "shop.db"], { cwd: folder, env: { ...process.env, HOME: folder } });
    return path.join(folder, "shop.db");
  })();
  return shop;
}

function temporaryFolder() {
  return fs.mkdtempSync(path.join(os.tmpdir(), "querymend-page."));
}

/** Runs a program and returns its output. */
async function run(program, args, options) {
  const { stdout } = await promisify(execFile)(program, args, { ...options, encoding: "utf8", timeout: hangTimeout });
  return stdout;
}

/** Waits until the server logs its address, and returns it. */
async function listening(server, log) {
  let url;
  await waitUntil("the server listens", () => {
    // Check for the exit first: the server may log its address and exit afterwards.
    const ended = server.exitCode !== null || server.signalCode !== null;
    const output = fs.readFileSync(log, "utf8");
    url = /listening at (http:\S+)/.exec(output)?.[1];
    if (ended) throw new Error(`the server did not start:\n${output}`);
    return url !== undefined;
  });
  return url;
}

/** Sends one request. Not with `fetch`, whose connection timeout of ten seconds cannot be changed. */
function request(url, where, body) {
  return new Promise((resolve, reject) => {
    const headers = { accept: "*/*", ...(body && { "content-type": "application/json" }) };
    const sent = http.request(new URL(where, url), { method: body ? "POST" : "GET", agent: false, headers }, (response) => {
      text(response).then((answer) => resolve({ status: response.statusCode, json: () => JSON.parse(answer) }), reject);
    });
    sent.on("error", reject);
    sent.end(body && JSON.stringify(body));
  });
}

const isSection = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Merges two configurations recursively. */
function merged(base, over) {
  const all = { ...base };
  for (const [name, value] of Object.entries(over)) all[name] = isSection(value) && isSection(base[name]) ? merged(base[name], value) : value;
  return all;
}

/** Writes a configuration as YAML. */
function yaml(section, indent = "") {
  return Object.entries(section)
    .map(([name, value]) => (isSection(value) ? `${indent}${name}:\n${yaml(value, `${indent}  `)}` : `${indent}${name}: ${JSON.stringify(value)}\n`))
    .join("");
}
