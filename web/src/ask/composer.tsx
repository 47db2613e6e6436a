import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { database, databases, me } from "../session";
import { strings } from "../strings";
import { ask, cancel, draft, running, startOver, turns } from "./conversation";

const words = strings.ask;

/** The box for questions. */
export function Composer() {
  const box = useRef<HTMLTextAreaElement>(null);
  const busy = running.value !== null;
  const first = turns.value.length === 0;

  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key === "Escape" && running.value && !document.querySelector("dialog[open]")) cancel();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  // On a phone the keyboard would cover the suggestions at once.
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
    // On a phone the keyboard makes room for the answer.
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
      <label class="unseen" for="question">
        {words.question}
      </label>
      <textarea
        id="question"
        ref={box}
        rows={1}
        maxLength={10_000}
        placeholder={first ? words.placeholder : words.followUp}
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
          {words.keys}
        </span>
        {busy ? (
          <button type="button" class="composer-send" onClick={cancel}>
            {words.cancel}
          </button>
        ) : (
          <button type="submit" class="main composer-send" disabled={!draft.value.trim()}>
            {words.ask}
          </button>
        )}
      </div>
      {me.value?.model === "" && <p class="notice warn small">{words.noModel}</p>}
    </form>
  );
}

export function DatabasePicker({ disabled = false }: { disabled?: boolean }) {
  return (
    <label class="picker">
      <span class="unseen">{strings.app.database}</span>
      <select
        value={database.value}
        disabled={disabled}
        onChange={(event) => {
          // A conversation is about one database.
          startOver();
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
