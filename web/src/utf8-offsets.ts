/**
 * Converts between UTF-8 byte offsets, which the server uses, and UTF-16 offsets of JavaScript
 * strings.
 */
export function byteToUtf16(text: string, byte: number): number {
  let bytes = 0;
  let unit = 0;
  for (const character of text) {
    if (bytes >= byte) return unit;
    bytes += utf8Length(character.codePointAt(0) ?? 0);
    unit += character.length;
  }
  return unit;
}

export function utf16ToByte(text: string, unit: number): number {
  let bytes = 0;
  let units = 0;
  for (const character of text) {
    if (units >= unit) return bytes;
    bytes += utf8Length(character.codePointAt(0) ?? 0);
    units += character.length;
  }
  return bytes;
}

function utf8Length(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
