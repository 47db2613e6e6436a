import { useCallback, useEffect, useState } from "preact/hooks";
import { serverUnreachable } from "./session";

export interface Resource<T> {
  /** Latest value; null before the first one. */
  value: T | null;
  error: string;
  loading: boolean;
  /** Fetches again. The current value stays until the new one arrives. */
  reload: () => void;
}

/**
 * Fetches a value on mount and whenever a dependency changes. Ignores responses that arrive out of
 * date.
 */
export function useResource<T>(load: () => Promise<T>, dependencies: readonly unknown[]): Resource<T> {
  const [state, setState] = useState<Omit<Resource<T>, "reload">>({ value: null, error: "", loading: true });
  const [round, setRound] = useState(0);
  useEffect(() => {
    let active = true;
    setState((before) => ({ ...before, loading: true }));
    load().then(
      (value) => active && setState({ value, error: "", loading: false }),
      (error: unknown) => active && setState((before) => ({ ...before, error: errorMessage(error), loading: false })),
    );
    return () => {
      active = false;
    };
  }, [...dependencies, round]);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  // Retry failed requests as soon as the server is reachable again.
  const isReachable = !serverUnreachable.value;
  useEffect(() => {
    if (isReachable && state.error) reload();
  }, [isReachable]);
  return { ...state, reload };
}

/** Returns the message of any thrown value. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
