/** Message of an event stream. */
export interface Message {
  event: string;
  data: string;
}

/**
 * Incremental parser for server-sent events. `EventSource` cannot be used: it supports neither POST
 * nor an Authorization header.
 */
export class EventStreamParser {
  /**
   * Chunks of the incomplete message. Joined only once, because an answer may have many megabytes.
   */
  private buffer: string[] = [];
  /** Last characters received, which may contain the start of a message delimiter. */
  private tail = "";

  /** Adds a chunk and returns the messages that it completes. */
  push(text: string): Message[] {
    const messages: Message[] = [];
    let rest = text;
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.tail + rest);
      if (!end) break;
      const after = end.index + end[0].length - this.tail.length;
      this.buffer.push(rest.slice(0, after));
      const message = parseMessage(this.buffer.join(""));
      if (message) messages.push(message);
      this.buffer = [];
      this.tail = "";
      rest = rest.slice(after);
    }
    this.buffer.push(rest);
    this.tail = (this.tail + rest).slice(-3);
    return messages;
  }
}

function parseMessage(block: string): Message | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    // Lines that start with a colon are keep-alive comments.
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    else if (name === "data") data.push(value);
  }
  return data.length === 0 ? null : { event, data: data.join("\n") };
}
