import { expect, test } from "vitest";
import { EventStreamParser } from "./event-stream";

test("parses messages across arbitrary chunk boundaries", () => {
  const whole = 'event: stage\ndata: {"a":1}\n\n: alive\n\nevent: text\r\ndata: one\r\ndata: two\r\n\r\ndata:bare\n\n';
  const expected = [
    { event: "stage", data: '{"a":1}' },
    { event: "text", data: "one\ntwo" },
    { event: "message", data: "bare" },
  ];
  for (let size = 1; size <= whole.length; size++) {
    const cutter = new EventStreamParser();
    const found = [];
    for (let at = 0; at < whole.length; at += size) found.push(...cutter.push(whole.slice(at, at + size)));
    expect(found).toEqual(expected);
  }
});

test("returns no incomplete message", () => {
  expect(new EventStreamParser().push("data: half")).toEqual([]);
});
