import { expect, test } from "vitest";
import { utf16ToByte, byteToUtf16 } from "./utf8-offsets";

test("offsets agree with TextEncoder", () => {
  for (const text of ["plain", "naïve €5 😀 'ünï' 漢字", ""]) {
    let unit = 0;
    for (const character of text) {
      const byte = new TextEncoder().encode(text.slice(0, unit)).length;
      expect(byteToUtf16(text, byte)).toBe(unit);
      expect(utf16ToByte(text, unit)).toBe(byte);
      unit += character.length;
    }
    expect(byteToUtf16(text, 10_000)).toBe(text.length);
  }
});
