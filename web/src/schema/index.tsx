export function Schema() {
  return null;
}
