import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { strings } from "./strings";

/** Wraps a component whose code is loaded on first use. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, rerender] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      let active = true;
      load().then(
        (component) => {
          loaded = component;
          if (active) rerender(1);
        },
        () => active && setFailed(true),
      );
      return () => {
        active = false;
      };
    }, []);
    if (loaded) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    return (
      <p class="quiet" role="status">
        {failed ? strings.app.loadFailed : strings.app.loading}
      </p>
    );
  };
}
