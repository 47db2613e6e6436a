import { type Rows, send } from "../api";
import { download } from "../clipboard";
import { Popup } from "../popup";
import { strings } from "../strings";
import { maxRows, type RowSource } from "./fetch-rows";
import { csv } from "./text";

const formats = {
  csv: { accept: "text/csv", extension: "csv" },
  parquet: { accept: "application/vnd.apache.parquet", extension: "parquet" },
  arrow: { accept: "application/vnd.apache.arrow.stream", extension: "arrows" },
} as const;

interface Props {
  rows: Rows;
  rowIndices: Uint32Array;
  source: RowSource | undefined;
  onError: (error: unknown) => void;
}

/** Export menu: the rows as shown, or all rows in a format written by the server. */
export function Export({ rows, rowIndices, source, onError }: Props) {
  const exportShown = () => {
    const columns = rows.columns.map((_, column) => column);
    download(new Blob([csv(rows, rowIndices, columns)], { type: "text/csv" }), "rows.csv");
  };
  const exportFromServer = async (format: keyof typeof formats) => {
    if (!source) return;
    const { accept, extension } = formats[format];
    try {
      const response = await send("/v1/run", { body: { ...source, max_rows: maxRows }, accept });
      if (!response.headers.get("content-type")?.startsWith(accept)) throw new Error(strings.result.notExported);
      download(await response.blob(), `rows.${extension}`);
    } catch (error) {
      onError(error);
    }
  };
  return (
    <Popup className="menu" buttonClass="button" button={strings.result.export}>
      {(close) => (
        <ul onClick={close}>
          <li>
            <button type="button" class="plain" onClick={exportShown}>
              {strings.result.exports.shown}
            </button>
          </li>
          {source &&
            (["csv", "parquet", "arrow"] as const).map((format) => (
              <li key={format}>
                <button type="button" class="plain" onClick={() => void exportFromServer(format)}>
                  {strings.result.exports[format]}
                </button>
              </li>
            ))}
        </ul>
      )}
    </Popup>
  );
}
