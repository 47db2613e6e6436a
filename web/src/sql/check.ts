import { useEffect, useState } from "preact/hooks";
import { api, type CheckResponse, type ProblemDetails } from "../api";
import { isAbortError, toProblem } from "../error-box";

/** Delay between the last keystroke and the check. */
const debounceMs = 250;

export interface LiveCheck {
  /** Text that was checked; the findings refer to this text only. */
  sql: string;
  response: CheckResponse | null;
  problem: ProblemDetails | null;
  checking: boolean;
}

/** Checks a query while it is typed. Aborts outdated checks. */
export function useCheck(sql: string, database: string, question: string): LiveCheck {
  const [live, setLive] = useState<LiveCheck>({ sql: "", response: null, problem: null, checking: false });
  useEffect(() => {
    if (!sql.trim()) {
      setLive({ sql, response: null, problem: null, checking: false });
      return;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      setLive((before) => ({ ...before, checking: true }));
      api.check({ sql, database, ...(question.trim() && { question }) }, controller.signal).then(
        (response) => setLive({ sql, response, problem: null, checking: false }),
        (error: unknown) => {
          if (!isAbortError(error)) setLive({ sql, response: null, problem: toProblem(error), checking: false });
        },
      );
    }, debounceMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [sql, database, question]);
  return live;
}
