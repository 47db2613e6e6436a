import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell } from "../api";
import { copyText } from "../clipboard";
import { strings } from "../strings";
import { textOf } from "./text";

/** A cell as a whole, however long it is. */
export function CellDialog({ title, cell, close }: { title: string; cell: Cell; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [said, say] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="cell-dialog" aria-label={title} onClose={close}>
      <h2 class="breaks">{title}</h2>
      <pre tabIndex={0}>
        {cell === null ? <span class="null">{strings.result.null}</span> : textOf(cell) || <span class="quiet">{strings.result.empty}</span>}
      </pre>
      <div class="row">
        <button
          type="button"
          onClick={async () => say((await copyText(textOf(cell))) ? strings.result.copiedCell : strings.result.notCopied)}
        >
          {strings.result.copy}
        </button>
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          {strings.result.close}
        </button>
        <span role="status" class="quiet small">
          {said}
        </span>
      </div>
    </dialog>
  );
}
