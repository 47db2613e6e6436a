import { useEffect } from "preact/hooks";
import { key } from "./api";
import { Ask } from "./ask";
import { lazy } from "./lazy";
import { go, route, type Route } from "./routes";
import { administers, away, begin, me, ready, signInNeeded } from "./session";
import { ShortcutsButton, useShortcuts } from "./shortcuts";
import { strings } from "./strings";
import { ruleShown } from "./trust/open-rule";
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
  useEffect(() => void begin(), []);
  useShortcuts();
  useEffect(() => {
    document.title = route.value === "ask" ? strings.app.name : `${strings.app[route.value]} · ${strings.app.name}`;
  }, [route.value]);
  const shown = (Object.keys(views) as Route[]).filter((one) => one !== "operations" || administers.value);
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
                go(one);
              }}
            >
              {strings.app[one]}
            </a>
          ))}
        </nav>
        <span class="top-end">
          {me.value?.signs_in && (
            <span class="who">
              <span title={me.value.role ?? ""}>{me.value.user}</span>
              <button type="button" class="plain" onClick={signOut}>
                {strings.app.signOut}
              </button>
            </span>
          )}
          <ShortcutsButton />
          <ThemeChoice />
        </span>
      </header>
      {away.value && (
        <div class="banner" role="alert">
          <span>{strings.app.away}</span>
          <button type="button" onClick={() => void begin()}>
            {strings.app.tryAgain}
          </button>
        </div>
      )}
      <main id="content" tabIndex={-1} class={`view-${route.value}`}>
        {signInNeeded.value ? <SignIn /> : ready.value || away.value ? views[route.value]() : <p class="quiet">{strings.app.loading}</p>}
      </main>
      {ruleShown.value && <RulePage />}
    </>
  );
}

/** The page is loaded anew, so that nothing of this user is left in it. */
function signOut(): void {
  key.set("");
  location.reload();
}

function ThemeChoice() {
  return (
    <label class="theme">
      <span class="unseen">{strings.app.theme}</span>
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
