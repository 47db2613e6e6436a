export function Ask() {
  return null;
}
