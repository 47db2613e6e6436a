import { expect, test } from "vitest";
import { exactJson } from "./exact-json";

test("numbers that a float cannot hold keep their digits where the browser can tell", () => {
  const tells = JSON.parse("1", ((_: string, __: unknown, context?: { source: string }) => context?.source) as never) === "1";
  expect(exactJson("[9007199254740993, 12, 1.5]")).toEqual(tells ? ["9007199254740993", 12, 1.5] : [9007199254740992, 12, 1.5]);
  expect(exactJson('{"a":"1234567890123456789","b":0.1234567890123456}')).toEqual({ a: "1234567890123456789", b: 0.1234567890123456 });
});
