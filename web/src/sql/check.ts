import { useEffect, useState } from "preact/hooks";
import { api, type Checked, type Told } from "../api";
import { isAborted, toldOf } from "../trouble";

/** So long after the last key the query is checked. */
const pause = 250;

export interface Live {
  /** The text that was checked. Its findings stand in no other. */
  sql: string;
  checked: Checked | null;
  told: Told | null;
  busy: boolean;
}

/** Checks a query as it is typed. What is overtaken by the next key is called off. */
export function useCheck(sql: string, database: string, question: string): Live {
  const [live, setLive] = useState<Live>({ sql: "", checked: null, told: null, busy: false });
  useEffect(() => {
    if (!sql.trim()) {
      setLive({ sql, checked: null, told: null, busy: false });
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(() => {
      setLive((before) => ({ ...before, busy: true }));
      api.check({ sql, database, ...(question.trim() && { question }) }, stop.signal).then(
        (checked) => setLive({ sql, checked, told: null, busy: false }),
        (error: unknown) => {
          if (!isAborted(error)) setLive({ sql, checked: null, told: toldOf(error), busy: false });
        },
      );
    }, pause);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [sql, database, question]);
  return live;
}
