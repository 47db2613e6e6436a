import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { navigate, type Route } from "./routes";
import { isAdmin } from "./session";
import { strings } from "./strings";

const labels = strings.app.keys;
const storageKey = "single-keys";

/**
 * Single-key shortcuts can be disabled: they conflict with speech input and with motor impairments
 * (WCAG 2.1.4).
 */
const shortcutsEnabled = signal(localStorage.getItem(storageKey) !== "no");
const dialogOpen = signal(false);

const views: Record<string, Route> = { a: "ask", s: "sql", d: "schema", t: "teach", o: "operations" };
/** Maximum time between the keys of a sequence, in milliseconds. */
const sequenceTimeout = 1500;

/** Handles keyboard shortcuts outside of text fields. */
export function useShortcuts(): void {
  useEffect(() => {
    let sequenceStart = 0;
    const onKeyDown = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select, [contenteditable]");
      if (!shortcutsEnabled.value || typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const view = Date.now() - sequenceStart < sequenceTimeout ? views[event.key] : undefined;
      sequenceStart = event.key === "g" ? Date.now() : 0;
      if (view) {
        if (view !== "operations" || isAdmin.value) navigate(view);
      } else if (event.key === "/") {
        navigate("ask");
        // Wait until the view is rendered.
        requestAnimationFrame(() => document.getElementById("question")?.focus());
      } else if (event.key === "?") dialogOpen.value = true;
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
}

export function ShortcutsButton() {
  return (
    <>
      <button type="button" class="keys-button" aria-label={labels.title} title={labels.title} onClick={() => (dialogOpen.value = true)}>
        ?
      </button>
      {dialogOpen.value && <ShortcutsDialog />}
    </>
  );
}

function ShortcutsDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="keys-dialog" aria-label={labels.title} onClose={() => (dialogOpen.value = false)}>
      <h2>{labels.title}</h2>
      <dl>
        {labels.list.map(([keys, what]) => (
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
          checked={shortcutsEnabled.value}
          onChange={(event) => {
            shortcutsEnabled.value = event.currentTarget.checked;
            localStorage.setItem(storageKey, shortcutsEnabled.value ? "yes" : "no");
          }}
        />
        {labels.enable}
      </label>
      <div class="row">
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          {labels.close}
        </button>
      </div>
    </dialog>
  );
}
