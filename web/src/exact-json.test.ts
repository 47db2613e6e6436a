import { expect, test } from "vitest";
import { parseExactJson } from "./exact-json";

test("keeps digits of large integers if the browser supports it", () => {
  const hasSource = JSON.parse("1", ((_: string, __: unknown, context?: { source: string }) => context?.source) as never) === "1";
  expect(parseExactJson("[9007199254740993, 12, 1.5]")).toEqual(hasSource ? ["9007199254740993", 12, 1.5] : [9007199254740992, 12, 1.5]);
  expect(parseExactJson('{"a":"1234567890123456789","b":0.1234567890123456}')).toEqual({ a: "1234567890123456789", b: 0.1234567890123456 });
});
