/** One message of an event stream: its name and its data. */
export interface Message {
  event: string;
  data: string;
}

/**
 * Cuts a stream of server-sent events into messages. `EventSource` cannot be used, since it neither posts nor sends an Authorization
 * header.
 */
export class MessageCutter {
  /** What has come of a message that is not complete. An answer may be many megabytes, so it is put together only once. */
  private pieces: string[] = [];
  /** The last characters, in which the end of a message may have begun. */
  private tail = "";

  /** Takes what came in and gives the messages that are complete with it. */
  push(text: string): Message[] {
    const messages: Message[] = [];
    let rest = text;
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.tail + rest);
      if (!end) break;
      const past = end.index + end[0].length - this.tail.length;
      this.pieces.push(rest.slice(0, past));
      const message = read(this.pieces.join(""));
      if (message) messages.push(message);
      this.pieces = [];
      this.tail = "";
      rest = rest.slice(past);
    }
    this.pieces.push(rest);
    this.tail = (this.tail + rest).slice(-3);
    return messages;
  }
}

function read(block: string): Message | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    // A line that begins with a colon only keeps the connection alive.
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}
