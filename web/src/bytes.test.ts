import { expect, test } from "vitest";
import { byteOfUnit, unitOfByte } from "./bytes";

test("places agree with what an encoder says", () => {
  for (const text of ["plain", "naïve €5 😀 'ünï' 漢字", ""]) {
    let unit = 0;
    for (const character of text) {
      const byte = new TextEncoder().encode(text.slice(0, unit)).length;
      expect(unitOfByte(text, byte)).toBe(unit);
      expect(byteOfUnit(text, unit)).toBe(byte);
      unit += character.length;
    }
    expect(unitOfByte(text, 10_000)).toBe(text.length);
  }
});
