import { useEffect, useState } from "preact/hooks";
import type { Told } from "./api";
import { problem, Trouble } from "./api";
import { strings } from "./strings";
import { Words } from "./trust/words";

/** Whatever was thrown, in the form in which the server tells problems. */
export function toldOf(error: unknown): Told {
  if (error instanceof Trouble) return error.told;
  return problem(0, "internal", error instanceof Error ? error.message : String(error));
}

export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** A problem with what can be done about it. Where the server says when to try again, the seconds are counted down. */
export function TroubleNotice({ told, retry, tone = "bad" }: { told: Told; retry?: (() => void) | undefined; tone?: "bad" | "warn" }) {
  const wait = useCountdown(told);
  return (
    <div class={`notice ${tone} stack`} role="alert">
      <p>
        <strong>{strings.app.codes[told.code] ?? told.title}</strong>
      </p>
      <p class="breaks">
        <Words text={sentence(told.detail)} />
      </p>
      {told.hint && (
        <p class="breaks">
          <strong>{strings.app.hint}</strong> <Words text={told.hint} />
        </p>
      )}
      {retry && (
        <div class="row">
          <button type="button" disabled={wait > 0} onClick={retry}>
            {strings.app.tryAgain}
          </button>
          {wait > 0 && <span aria-live="off">{strings.app.wait(wait)}</span>}
        </div>
      )}
    </div>
  );
}

/** Capitalizes a message of the server that begins with a plain word, and not with a name. */
function sentence(message: string): string {
  return /^[a-z]+[ ,:;]/.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message;
}

function useCountdown(told: Told): number {
  const [left, setLeft] = useState(told.retry_after_s ?? 0);
  useEffect(() => {
    const end = Date.now() + (told.retry_after_s ?? 0) * 1000;
    setLeft(told.retry_after_s ?? 0);
    if (!told.retry_after_s) return;
    const clock = setInterval(() => {
      const now = Math.max(0, Math.ceil((end - Date.now()) / 1000));
      setLeft(now);
      if (now === 0) clearInterval(clock);
    }, 500);
    return () => clearInterval(clock);
  }, [told]);
  return left;
}
