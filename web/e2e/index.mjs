// Runs all tests in one process with one browser. To run a single file: `node --test-reporter=spec e2e/ask.test.mjs`.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "./suite.mjs";
// The first four share a server; the last of them stops and restarts it.
import "./ask.test.mjs";
import "./sql.test.mjs";
import "./teach.test.mjs";
import "./offline.test.mjs";
import "./views.test.mjs";
import "./sign-in.test.mjs";
import "./hostile.test.mjs";
import "./speed.test.mjs";
import "./analysis.test.mjs";

test("every test file is imported here", () => {
  const own = fileURLToPath(import.meta.url);
  const imported = fs.readFileSync(own, "utf8").match(/(?<=^import "\.\/).*(?=";$)/gm);
  const files = fs.readdirSync(path.dirname(own)).filter((file) => file.endsWith(".test.mjs"));
  assert.deepEqual(imported.sort(), files.sort());
});
