// A model that says what a test has written down, in the way of OpenAI's servers. It knows a question by its words, and gives
// one reply after the other each time it is asked about it; the last one again and again.
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/**
 * `script` is a list of `{ question, replies }`; entries may be added later. A reply is a text, or `{ text, pace, status, after }`: `pace`
 * are milliseconds between pieces of the text, `after` is a promise that the first of them waits for, and a `status` that is not 200 is
 * an error.
 */
export async function startModel(script) {
  const asked = new Map();
  const prompts = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "GET") return json(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    const call = JSON.parse(body || "{}");
    const prompt = (call.messages ?? []).map((message) => textOf(message.content)).join("\n");
    prompts.push(prompt);
    // The question that was asked last counts: others may stand before it as examples, or as earlier ones of the conversation.
    const found = script
      .map((entry) => ({ entry, at: prompt.lastIndexOf(entry.question) }))
      .filter(({ entry, at }) => at >= 0 && (!entry.about || entry.about.test(prompt)))
      .sort((a, b) => Number(Boolean(b.entry.about)) - Number(Boolean(a.entry.about)) || b.at - a.at)[0]?.entry;
    const count = asked.get(found) ?? 0;
    asked.set(found, count + 1);
    const replies = found?.replies ?? ["I have nothing to say about this."];
    const reply = replies[Math.min(count, replies.length - 1)];
    const { text = "", pace = 0, status = 200, after } = typeof reply === "string" ? { text: reply } : reply;
    await after;
    if (status !== 200) return json(response, status, { error: { message: text || "scripted failure", type: "server_error" } });
    const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };
    const head = { id: "scripted", created: 0, model: "scripted" };
    if (!call.stream) {
      return json(response, 200, {
        ...head,
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
        usage,
      });
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (data) => response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
    for (const piece of text.match(/[\s\S]{1,12}/gu) ?? []) {
      if (response.destroyed) return;
      send({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta: { content: piece }, finish_reason: null }] });
      if (pace) await pause(pace);
    }
    send({ ...head, object: "chat.completion.chunk", choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage });
    send("[DONE]");
    response.end();
  });
  // Only tests decide when this server gives up: a slow machine must not find a connection closed.
  server.keepAliveTimeout = server.headersTimeout = server.requestTimeout = 0;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    name: `http://127.0.0.1:${server.address().port}/v1#scripted`,
    script,
    prompts,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function textOf(content) {
  return typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");
}

function json(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
