import { useRef, useState } from "preact/hooks";
import { credential } from "../api";
import { serverUnreachable, loadSession, signInRequired } from "../session";
import { strings } from "../strings";
import "./sign-in.css";

const labels = strings.signIn;

/** Sign-in form for an API key or token, which never becomes part of a URL. */
export function SignIn() {
  const [error, setError] = useState("");
  const [submitting, setSubmitting] = useState(false);
  const [keyVisible, setKeyVisible] = useState(false);
  const field = useRef<HTMLInputElement>(null);

  async function signIn(event: Event): Promise<void> {
    event.preventDefault();
    const typed = field.current?.value.trim() ?? "";
    if (!typed) return showError(labels.required);
    setSubmitting(true);
    setError("");
    credential.set(typed);
    await loadSession();
    setSubmitting(false);
    // Do not keep a rejected key: it would be sent with every request.
    if (signInRequired.value && !serverUnreachable.value) {
      credential.set("");
      showError(labels.wrong);
    }
  }

  function showError(message: string): void {
    setError(message);
    field.current?.focus();
  }

  return (
    <form class="sign-in card stack" onSubmit={(event) => void signIn(event)} aria-labelledby="sign-in-title">
      <h1 id="sign-in-title">{labels.title}</h1>
      <p class="quiet">{labels.about}</p>
      <label class="stack">
        <span>{labels.key}</span>
        <input
          ref={field}
          type={keyVisible ? "text" : "password"}
          name="key"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          autofocus
          class="mono"
          aria-invalid={error !== ""}
          aria-describedby="sign-in-error sign-in-help"
        />
      </label>
      <label class="row">
        <input type="checkbox" checked={keyVisible} onChange={(event) => setKeyVisible(event.currentTarget.checked)} />
        {labels.show}
      </label>
      <p id="sign-in-error" role="alert" class={error ? "notice bad" : "visually-hidden"}>
        {error}
      </p>
      <button type="submit" class="main" disabled={submitting}>
        {submitting ? labels.submitting : labels.button}
      </button>
      <p id="sign-in-help" class="small quiet">
        {labels.help}
      </p>
    </form>
  );
}
