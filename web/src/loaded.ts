import { useCallback, useEffect, useState } from "preact/hooks";
import { away } from "./session";

export interface Loaded<T> {
  /** What came, or what came last. */
  value: T | null;
  trouble: string;
  loading: boolean;
  /** Fetches it again; what is shown stays until the new one is there. */
  again: () => void;
}

/** Fetches something when a view is shown, and again when what it depends on changes. An answer that comes too late is not taken. */
export function useLoaded<T>(load: () => Promise<T>, depends: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "again">>({ value: null, trouble: "", loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    let here = true;
    setState((before) => ({ ...before, loading: true }));
    load().then(
      (value) => here && setState({ value, trouble: "", loading: false }),
      (error: unknown) => here && setState((before) => ({ ...before, trouble: wordsOf(error), loading: false })),
    );
    return () => {
      here = false;
    };
  }, [...depends, round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  // What could not be fetched while the server was away comes by itself once it is back.
  const here = !away.value;
  useEffect(() => {
    if (here && state.trouble) again();
  }, [here]);
  return { ...state, again };
}

/** What went wrong, for people. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
