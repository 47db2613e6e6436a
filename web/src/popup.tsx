import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  /** CSS classes of the whole element and of its button. */
  className: string;
  buttonClass: string;
  button: ComponentChildren;
  /** Renders the content; receives a function that closes it. */
  children: (close: () => void) => ComponentChildren;
}

/** Button that opens a popup. Closes on an outside click, on Escape and when the focus leaves. */
export function Popup({ className, buttonClass, button, children }: Props) {
  const box = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (box.current) box.current.open = false;
  };
  useEffect(() => {
    const onPointerDown = (event: PointerEvent) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) close();
    };
    addEventListener("pointerdown", onPointerDown);
    return () => removeEventListener("pointerdown", onPointerDown);
  }, []);
  return (
    <details
      ref={box}
      class={className}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !box.current?.open) return;
        event.stopPropagation();
        close();
        box.current.querySelector("summary")?.focus();
      }}
      onFocusOut={(event) => {
        if (event.relatedTarget instanceof Node && !box.current?.contains(event.relatedTarget)) close();
      }}
    >
      <summary class={buttonClass}>{button}</summary>
      {children(close)}
    </details>
  );
}
