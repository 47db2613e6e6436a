export function Teach() {
  return null;
}
