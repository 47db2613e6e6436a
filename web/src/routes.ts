import { signal } from "@preact/signals";

/** The views that have an address of their own. The server answers each of these addresses with the page. */
export type Route = "ask" | "sql" | "schema" | "teach" | "operations";

const routes: readonly Route[] = ["ask", "sql", "schema", "teach", "operations"];

function routeOf(path: string): Route {
  const name = path.replace(/^\/+|\/+$/g, "");
  return routes.find((route) => route === name) ?? "ask";
}

export const route = signal<Route>(routeOf(location.pathname));

/** What one view hands to another, such as a question about a table. It never becomes part of the address. */
export interface Handed {
  question?: string;
  sql?: string;
  database?: string;
}
export const handed = signal<Handed | null>(null);

export function go(to: Route, hand: Handed | null = null): void {
  handed.value = hand;
  if (route.value !== to) {
    history.pushState(null, "", `/${to}`);
    route.value = to;
  }
}

addEventListener("popstate", () => {
  handed.value = null;
  route.value = routeOf(location.pathname);
});
