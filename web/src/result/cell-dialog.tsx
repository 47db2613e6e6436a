import { useEffect, useRef, useState } from "preact/hooks";
import type { Cell } from "../api";
import { copyText } from "../clipboard";
import { strings } from "../strings";
import { cellText } from "./text";

/** Dialog with the full content of a cell. */
export function CellDialog({ title, cell, close }: { title: string; cell: Cell; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [status, setStatus] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="cell-dialog" aria-label={title} onClose={close}>
      <h2 class="breaks">{title}</h2>
      <pre tabIndex={0}>
        {cell === null ? <span class="null">{strings.result.null}</span> : cellText(cell) || <span class="quiet">{strings.result.empty}</span>}
      </pre>
      <div class="row">
        <button
          type="button"
          onClick={async () => setStatus((await copyText(cellText(cell))) ? strings.result.copiedCell : strings.result.notCopied)}
        >
          {strings.result.copy}
        </button>
        <button type="button" class="main" onClick={() => dialog.current?.close()}>
          {strings.result.close}
        </button>
        <span role="status" class="quiet small">
          {status}
        </span>
      </div>
    </dialog>
  );
}
