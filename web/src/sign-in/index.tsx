import { useRef, useState } from "preact/hooks";
import { key } from "../api";
import { away, begin, signInNeeded } from "../session";
import { strings } from "../strings";
import "./sign-in.css";

const words = strings.signIn;

/** Asks for a key or token and tries it. Nothing of it ever becomes part of an address. */
export function SignIn() {
  const [trouble, setTrouble] = useState("");
  const [trying, setTrying] = useState(false);
  const [seen, setSeen] = useState(false);
  const field = useRef<HTMLInputElement>(null);

  async function signIn(event: Event): Promise<void> {
    event.preventDefault();
    const typed = field.current?.value.trim() ?? "";
    if (!typed) return complain(words.empty);
    setTrying(true);
    setTrouble("");
    key.set(typed);
    await begin();
    setTrying(false);
    // A key that was refused is not kept: it would be sent again with every request.
    if (signInNeeded.value && !away.value) {
      key.set("");
      complain(words.wrong);
    }
  }

  function complain(about: string): void {
    setTrouble(about);
    field.current?.focus();
  }

  return (
    <form class="sign-in card stack" onSubmit={(event) => void signIn(event)} aria-labelledby="sign-in-title">
      <h1 id="sign-in-title">{words.title}</h1>
      <p class="quiet">{words.about}</p>
      <label class="stack">
        <span>{words.key}</span>
        <input
          ref={field}
          type={seen ? "text" : "password"}
          name="key"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          autofocus
          class="mono"
          aria-invalid={trouble !== ""}
          aria-describedby="sign-in-trouble sign-in-help"
        />
      </label>
      <label class="row">
        <input type="checkbox" checked={seen} onChange={(event) => setSeen(event.currentTarget.checked)} />
        {words.show}
      </label>
      <p id="sign-in-trouble" role="alert" class={trouble ? "notice bad" : "unseen"}>
        {trouble}
      </p>
      <button type="submit" class="main" disabled={trying}>
        {trying ? words.trying : words.button}
      </button>
      <p id="sign-in-help" class="small quiet">
        {words.help}
      </p>
    </form>
  );
}
