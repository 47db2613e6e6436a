import { dialect } from "../session";
import { type Block, parseBlocks, type Inline, parseInlines } from "./markdown";
import { SqlView } from "./sql-view";

/** Renders Markdown as elements. Text is never interpreted as HTML. */
export function MarkdownView({ text }: { text: string }) {
  return (
    <div class="markdown">
      {parseBlocks(text).map((block, i) => (
        <BlockView key={i} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }) {
  switch (block.kind) {
    case "heading":
      return block.level <= 2 ? <h3>{renderInlines(block.text)}</h3> : <h4>{renderInlines(block.text)}</h4>;
    case "paragraph":
      return <p>{renderInlines(block.text)}</p>;
    case "quote":
      return <blockquote>{renderInlines(block.text)}</blockquote>;
    case "list": {
      const items = block.items.map((item, i) => <li key={i}>{renderInlines(item)}</li>);
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <table>
          <thead>
            <tr>
              {block.head.map((cell, i) => (
                <th key={i}>{renderInlines(cell)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {block.rows.map((row, i) => (
              <tr key={i}>
                {row.map((cell, j) => (
                  <td key={j}>{renderInlines(cell)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      );
    case "code": {
      const query = block.info === "sql" || block.info.startsWith("fixed");
      return (
        <figure class="example">
          {block.info && block.info !== "sql" && <figcaption class="small quiet">{block.info}</figcaption>}
          {query ? (
            <SqlView sql={block.text} dialect={dialect.value} />
          ) : (
            <pre class="sql" tabIndex={0}>
              {block.text}
            </pre>
          )}
        </figure>
      );
    }
  }
}

function renderInlines(text: string) {
  return parseInlines(text).map((one, i) => <InlineView key={i} one={one} />);
}

function InlineView({ one }: { one: Inline }) {
  switch (one.kind) {
    case "text":
      return <>{one.text}</>;
    case "code":
      return <code>{one.text}</code>;
    case "strong":
      return <strong>{one.text}</strong>;
    case "emphasis":
      return <em>{one.text}</em>;
  }
}
