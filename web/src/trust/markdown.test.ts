import { expect, test } from "vitest";
import { parseBlocks, parseInlines } from "./markdown";

test("parses the blocks of a rule page", () => {
  const page = "# Rule\nA name\nis wrong.\n\n## How\n1. first\n   goes on;\n2. second\n\n- a\n- b\n\n```sql\nSELECT 1\n\n-- two\n```\n```fixed safe\nx\n```\n> said\n\n| a | b |\n|---|---|\n| 1 | `2` |\n";
  expect(parseBlocks(page)).toEqual([
    { kind: "heading", level: 1, text: "Rule" },
    { kind: "paragraph", text: "A name is wrong." },
    { kind: "heading", level: 2, text: "How" },
    { kind: "list", ordered: true, items: ["first goes on;", "second"] },
    { kind: "list", ordered: false, items: ["a", "b"] },
    { kind: "code", info: "sql", text: "SELECT 1\n\n-- two" },
    { kind: "code", info: "fixed safe", text: "x" },
    { kind: "quote", text: "said" },
    { kind: "table", head: ["a", "b"], rows: [["1", "`2`"]] },
  ]);
});

test("parses inline markup", () => {
  expect(parseInlines("write `c.id`, **never** [this](javascript:alert(1)) *please*")).toEqual([
    { kind: "text", text: "write " },
    { kind: "code", text: "c.id" },
    { kind: "text", text: ", " },
    { kind: "strong", text: "never" },
    { kind: "text", text: " " },
    { kind: "text", text: "this" },
    { kind: "text", text: ") " },
    { kind: "emphasis", text: "please" },
  ]);
});

test("terminates on malformed input", () => {
  for (const odd of ["```", "|", ">", "#", "- ", "|\n|-", "`", "**", "1.", "\n\n", "<script>alert(1)</script>"]) {
    expect(Array.isArray(parseBlocks(odd))).toBe(true);
    expect(parseInlines(odd).map((one) => one.text).join("")).toBe(odd.length ? odd : "");
  }
});
