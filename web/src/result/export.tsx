import { useRef } from "preact/hooks";
import { type Rows, send } from "../api";
import { download } from "../clipboard";
import { strings } from "../strings";
import { mostRows, type Source } from "./more";
import { csv } from "./text";

const formats = {
  csv: { accept: "text/csv", ending: "csv" },
  parquet: { accept: "application/vnd.apache.parquet", ending: "parquet" },
  arrow: { accept: "application/vnd.apache.arrow.stream", ending: "arrows" },
} as const;

interface Props {
  rows: Rows;
  places: Uint32Array;
  source: Source | undefined;
  fail: (error: unknown) => void;
}

/** What is shown, made here; or the rows of the database, written by the server. */
export function Export({ rows, places, source, fail }: Props) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (menu.current) menu.current.open = false;
  };
  const shown = () => {
    const columns = rows.columns.map((_, column) => column);
    download(new Blob([csv(rows, places, columns)], { type: "text/csv" }), "rows.csv");
    close();
  };
  const fetched = async (format: keyof typeof formats) => {
    close();
    if (!source) return;
    const { accept, ending } = formats[format];
    try {
      const response = await send("/v1/run", { body: { ...source, max_rows: mostRows }, accept });
      if (!response.headers.get("content-type")?.startsWith(accept)) throw new Error(strings.result.notExported);
      download(await response.blob(), `rows.${ending}`);
    } catch (error) {
      fail(error);
    }
  };
  return (
    <details
      ref={menu}
      class="menu"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !menu.current?.open) return;
        event.stopPropagation();
        close();
        menu.current.querySelector("summary")?.focus();
      }}
      onFocusOut={(event) => {
        if (!(event.relatedTarget instanceof Node) || !menu.current?.contains(event.relatedTarget)) close();
      }}
    >
      <summary class="button">{strings.result.export}</summary>
      <ul>
        <li>
          <button type="button" class="plain" onClick={shown}>
            {strings.result.exports.shown}
          </button>
        </li>
        {source &&
          (["csv", "parquet", "arrow"] as const).map((format) => (
            <li key={format}>
              <button type="button" class="plain" onClick={() => void fetched(format)}>
                {strings.result.exports[format]}
              </button>
            </li>
          ))}
      </ul>
    </details>
  );
}
