/** The server counts bytes of UTF-8, the browser counts UTF-16 units: from the one to the other and back. */
export function unitOfByte(text: string, byte: number): number {
  let bytes = 0;
  let unit = 0;
  for (const character of text) {
    if (bytes >= byte) return unit;
    bytes += bytesOf(character.codePointAt(0) ?? 0);
    unit += character.length;
  }
  return unit;
}

export function byteOfUnit(text: string, unit: number): number {
  let bytes = 0;
  let units = 0;
  for (const character of text) {
    if (units >= unit) return bytes;
    bytes += bytesOf(character.codePointAt(0) ?? 0);
    units += character.length;
  }
  return bytes;
}

function bytesOf(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}
