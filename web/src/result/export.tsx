import { type Rows, send } from "../api";
import { download } from "../clipboard";
import { Popup } from "../popup";
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
  const shown = () => {
    const columns = rows.columns.map((_, column) => column);
    download(new Blob([csv(rows, places, columns)], { type: "text/csv" }), "rows.csv");
  };
  const fetched = async (format: keyof typeof formats) => {
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
    <Popup look="menu" buttonLook="button" button={strings.result.export}>
      {(close) => (
        <ul onClick={close}>
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
      )}
    </Popup>
  );
}
