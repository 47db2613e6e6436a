import { useEffect, useState } from "preact/hooks";
import type { ProblemDetails } from "./api";
import { clientProblem, ApiError } from "./api";
import { strings } from "./strings";
import { InlineCode } from "./trust/inline-code";

/** Converts any thrown value to problem details. */
export function toProblem(error: unknown): ProblemDetails {
  if (error instanceof ApiError) return error.problem;
  return clientProblem(0, "internal", error instanceof Error ? error.message : String(error));
}

export function isAbortError(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Error message with its hint and a retry button. Counts down the `Retry-After` seconds. */
export function ErrorBox({ problem, retry, tone = "bad" }: { problem: ProblemDetails; retry?: (() => void) | undefined; tone?: "bad" | "warn" }) {
  const wait = useCountdown(problem);
  return (
    <div class={`notice ${tone} stack`} role="alert">
      <p>
        <strong>{strings.app.codes[problem.code] ?? problem.title}</strong>
      </p>
      <p class="breaks">
        <InlineCode text={capitalize(problem.detail)} />
      </p>
      {problem.hint && (
        <p class="breaks">
          <strong>{strings.app.hint}</strong> <InlineCode text={problem.hint} />
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

/** Capitalizes a message that starts with a plain word rather than an identifier. */
function capitalize(message: string): string {
  return /^[a-z]+[ ,:;]/.test(message) ? message.charAt(0).toUpperCase() + message.slice(1) : message;
}

function useCountdown(problem: ProblemDetails): number {
  const [secondsLeft, setSecondsLeft] = useState(problem.retry_after_s ?? 0);
  useEffect(() => {
    const end = Date.now() + (problem.retry_after_s ?? 0) * 1000;
    setSecondsLeft(problem.retry_after_s ?? 0);
    if (!problem.retry_after_s) return;
    const clock = setInterval(() => {
      const now = Math.max(0, Math.ceil((end - Date.now()) / 1000));
      setSecondsLeft(now);
      if (now === 0) clearInterval(clock);
    }, 500);
    return () => clearInterval(clock);
  }, [problem]);
  return secondsLeft;
}
