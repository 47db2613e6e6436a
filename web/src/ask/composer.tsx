import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { database, databases, currentUser } from "../session";
import { strings } from "../strings";
import { ask, cancel, draft, running, startNewConversation, turns } from "./conversation";

const labels = strings.ask;

/** Input box for questions. */
export function Composer() {
  const box = useRef<HTMLTextAreaElement>(null);
  const busy = running.value !== null;
  const isFirst = turns.value.length === 0;

  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      if (event.key === "Escape" && running.value && !document.querySelector("dialog[open]")) cancel();
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  // Focus only with a fine pointer: on a phone the keyboard would cover the suggestions.
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) box.current?.focus({ preventScroll: true });
  }, []);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, 200)}px`;
  }, [draft.value]);

  const send = () => {
    const question = draft.value;
    if (!question.trim() || busy) return;
    draft.value = "";
    // Hide the keyboard of a phone to make room for the answer.
    if (matchMedia("(pointer: coarse)").matches) box.current?.blur();
    void ask(question);
  };
  return (
    <form
      class="composer card"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="visually-hidden" for="question">
        {labels.question}
      </label>
      <textarea
        id="question"
        ref={box}
        rows={1}
        maxLength={10_000}
        placeholder={isFirst ? labels.placeholder : labels.followUp}
        aria-describedby="question-keys"
        value={draft.value}
        onInput={(event) => {
          draft.value = event.currentTarget.value;
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          send();
        }}
      />
      <div class="row composer-row">
        <DatabasePicker disabled={busy} />
        <span id="question-keys" class="quiet small composer-keys">
          {labels.keys}
        </span>
        {busy ? (
          <button type="button" class="composer-send" onClick={cancel}>
            {labels.cancel}
          </button>
        ) : (
          <button type="submit" class="main composer-send" disabled={!draft.value.trim()}>
            {labels.ask}
          </button>
        )}
      </div>
      {currentUser.value?.model === "" && <p class="notice warn small">{labels.noModel}</p>}
    </form>
  );
}

export function DatabasePicker({ disabled = false }: { disabled?: boolean }) {
  return (
    <label class="picker">
      <span class="visually-hidden">{strings.app.database}</span>
      <select
        value={database.value}
        disabled={disabled}
        onChange={(event) => {
          // A conversation belongs to one database.
          startNewConversation();
          database.value = event.currentTarget.value;
        }}
      >
        {databases.value.map((one) => (
          <option key={one.name} value={one.name}>
            {one.name} ({one.dialect})
          </option>
        ))}
      </select>
    </label>
  );
}
