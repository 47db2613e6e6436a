import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { go, type Route } from "./routes";
import { administers } from "./session";
import { strings } from "./strings";

const words = strings.app.keys;
const place = "single-keys";

/** Keys without Ctrl can be turned off: for some who speak to their computer, or whose hands shake, they do harm. */
const inUse = signal(localStorage.getItem(place) !== "no");
const listed = signal(false);

const views: Record<string, Route> = { a: "ask", s: "sql", d: "schema", t: "teach", o: "operations" };
/** So long after `g` the next key is still part of it. */
const patience = 1500;

/** Listens for keys wherever nothing is being typed. */
export function useShortcuts(): void {
  useEffect(() => {
    let begun = 0;
    const press = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
      if (!inUse.value || typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const view = Date.now() - begun < patience ? views[event.key] : undefined;
      begun = event.key === "g" ? Date.now() : 0;
      if (view) {
        if (view !== "operations" || administers.value) go(view);
      } else if (event.key === "/") {
        go("ask");
        // The view may have to be drawn first.
        requestAnimationFrame(() => document.getElementById("question")?.focus());
      } else if (event.key === "?") listed.value = true;
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

export function ShortcutsButton() {
  return (
    <>
      <button type="button" class="keys-button" aria-label={words.title} title={words.title} onClick={() => (listed.value = true)}>
        ?
      </button>
      {listed.value && <ShortcutsDialog />}
    </>
  );
}

function ShortcutsDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="keys-dialog" aria-label={words.title} onClose={() => (listed.value = false)}>
      <h2>{words.title}</h2>
      <dl>
        {words.list.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <label class="row">
        <input
          type="checkbox"
          checked={inUse.value}
          onChange={(event) => {
            inUse.value = event.currentTarget.checked;
            localStorage.setItem(place, inUse.value ? "yes" : "no");
          }}
        />
        {words.single}
      </label>
      <div class="row">
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          {words.close}
        </button>
      </div>
    </dialog>
  );
}
