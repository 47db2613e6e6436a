import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { strings } from "./strings";

/** A component whose code is fetched when it is first shown. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function Lazy(props: P) {
    const [, shown] = useState(0);
    const [failed, setFailed] = useState(false);
    useEffect(() => {
      if (loaded) return;
      let here = true;
      load().then(
        (component) => {
          loaded = component;
          if (here) shown(1);
        },
        () => here && setFailed(true),
      );
      return () => {
        here = false;
      };
    }, []);
    if (loaded) {
      const Loaded = loaded;
      return <Loaded {...props} />;
    }
    return (
      <p class="quiet" role="status">
        {failed ? strings.app.wentWrong : strings.app.loading}
      </p>
    );
  };
}
