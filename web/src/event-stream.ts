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
  private rest = "";

  /** Takes what came in and gives the messages that are complete with it. */
  push(text: string): Message[] {
    this.rest += text;
    const messages: Message[] = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.rest);
      if (!end) return messages;
      const message = read(this.rest.slice(0, end.index));
      this.rest = this.rest.slice(end.index + end[0].length);
      if (message) messages.push(message);
    }
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
