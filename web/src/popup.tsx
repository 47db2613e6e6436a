import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Props {
  /** How it looks as a whole, and its button. */
  look: string;
  buttonLook: string;
  button: ComponentChildren;
  /** What opens; it is given the way to close it. */
  children: (close: () => void) => ComponentChildren;
}

/** A button that opens something above the page. It closes by itself when something else is done: a press elsewhere, Escape, the focus. */
export function Popup({ look, buttonLook, button, children }: Props) {
  const box = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (box.current) box.current.open = false;
  };
  useEffect(() => {
    const elsewhere = (event: PointerEvent) => {
      if (event.target instanceof Node && !box.current?.contains(event.target)) close();
    };
    addEventListener("pointerdown", elsewhere);
    return () => removeEventListener("pointerdown", elsewhere);
  }, []);
  return (
    <details
      ref={box}
      class={look}
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
      <summary class={buttonLook}>{button}</summary>
      {children(close)}
    </details>
  );
}
