import { signal } from "@preact/signals";

/** Views with their own URL. The server returns the page for each of them. */
export type Route = "ask" | "sql" | "schema" | "teach" | "operations";

const routes: readonly Route[] = ["ask", "sql", "schema", "teach", "operations"];

function routeOf(path: string): Route {
  const name = path.replace(/^\/+|\/+$/g, "");
  return routes.find((route) => route === name) ?? "ask";
}

export const route = signal<Route>(routeOf(location.pathname));

/** Data passed from one view to another. Never part of the URL. */
export interface NavigationState {
  question?: string;
  sql?: string;
  database?: string;
}
export const navigationState = signal<NavigationState | null>(null);

export function navigate(to: Route, state: NavigationState | null = null): void {
  navigationState.value = state;
  if (route.value !== to) {
    history.pushState(null, "", `/${to}`);
    route.value = to;
  }
}

addEventListener("popstate", () => {
  navigationState.value = null;
  route.value = routeOf(location.pathname);
});
