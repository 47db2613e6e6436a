import { useEffect } from "preact/hooks";
import { credential } from "./api";
import { Ask } from "./ask";
import { lazy } from "./lazy";
import { navigate, route, type Route } from "./routes";
import { isAdmin, serverUnreachable, loadSession, currentUser, ready, signInRequired } from "./session";
import { ShortcutsButton, useShortcuts } from "./shortcuts";
import { strings } from "./strings";
import { openRuleCode } from "./trust/open-rule";
import { chooseTheme, theme, type Theme } from "./theme";

const Sql = lazy(() => import("./sql").then((view) => view.Sql));
const Schema = lazy(() => import("./schema").then((view) => view.Schema));
const Teach = lazy(() => import("./teach").then((view) => view.Teach));
const Operations = lazy(() => import("./operations").then((view) => view.Operations));
const RulePage = lazy(() => import("./trust/rule-page").then((view) => view.RulePage));
const SignIn = lazy(() => import("./sign-in").then((view) => view.SignIn));

const views: Record<Route, () => preact.JSX.Element> = {
  ask: () => <Ask />,
  sql: () => <Sql />,
  schema: () => <Schema />,
  teach: () => <Teach />,
  operations: () => <Operations />,
};

export function App() {
  useEffect(() => void loadSession(), []);
  useShortcuts();
  useEffect(() => {
    document.title = route.value === "ask" ? strings.app.name : `${strings.app[route.value]} · ${strings.app.name}`;
  }, [route.value]);
  const shown = (Object.keys(views) as Route[]).filter((one) => one !== "operations" || isAdmin.value);
  return (
    <>
      <a class="skip" href="#content">
        {strings.app.skip}
      </a>
      <header class="top">
        <span class="brand">
          <img src="/icon.svg" alt="" width="22" height="22" />
          <span>{strings.app.name}</span>
        </span>
        <nav aria-label={strings.app.views}>
          {shown.map((one) => (
            <a
              key={one}
              href={`/${one}`}
              aria-current={route.value === one ? "page" : undefined}
              onClick={(event) => {
                if (event.metaKey || event.ctrlKey || event.shiftKey) return;
                event.preventDefault();
                navigate(one);
              }}
            >
              {strings.app[one]}
            </a>
          ))}
        </nav>
        <span class="top-end">
          {currentUser.value?.signs_in && (
            <span class="user-info">
              <span title={currentUser.value.role ?? ""}>{currentUser.value.user}</span>
              <button type="button" class="plain" onClick={signOut}>
                {strings.app.signOut}
              </button>
            </span>
          )}
          <ShortcutsButton />
          <ThemeChoice />
        </span>
      </header>
      {serverUnreachable.value && (
        <div class="banner" role="alert">
          <span>{strings.app.offline}</span>
          <button type="button" onClick={() => void loadSession()}>
            {strings.app.tryAgain}
          </button>
        </div>
      )}
      <main id="content" tabIndex={-1} class={`view-${route.value}`}>
        {signInRequired.value ? <SignIn /> : ready.value || serverUnreachable.value ? views[route.value]() : <p class="quiet">{strings.app.loading}</p>}
      </main>
      {openRuleCode.value && <RulePage />}
    </>
  );
}

/** Reloads the page, so that no data of the user remains in memory. */
function signOut(): void {
  credential.set("");
  location.reload();
}

function ThemeChoice() {
  return (
    <label class="theme">
      <span class="visually-hidden">{strings.app.theme}</span>
      <select value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
        {(["auto", "light", "dark"] as const).map((one) => (
          <option key={one} value={one}>
            {strings.app.themes[one]}
          </option>
        ))}
      </select>
    </label>
  );
}
