export function Sql() {
  return null;
}
