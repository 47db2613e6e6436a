/** A line of text in which names in backticks are shown as code. Everything in it stays text. */
export function Words({ text }: { text: string }) {
  return (
    <>
      {text.split(/`([^`]+)`/).map((piece, i) => (i % 2 === 1 ? <code key={i}>{piece}</code> : piece))}
    </>
  );
}
