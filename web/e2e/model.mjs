// Scripted model with an OpenAI-compatible API. It recognizes questions by their text and returns the replies of each in
// order, repeating the last one.
import http from "node:http";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Starts the model. `script` is a list of `{ question, replies }`; entries may be added later. A reply is a text, or
 * `{ text, pace, status, after }`: `pace` is the delay between chunks in milliseconds, `after` is a promise that the first chunk
 * waits for, and a `status` other than 200 makes it an error.
 */
export async function startModel(script) {
  const replyCounts = new Map();
  const prompts = [];
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    if (request.method === "GET") return json(response, 200, { object: "list", data: [{ id: "scripted", object: "model" }] });
    const call = JSON.parse(body || "{}");
    const prompt = (call.messages ?? []).map((message) => textOf(message.content)).join("\n");
    prompts.push(prompt);
    // The last question of the prompt counts: earlier ones are examples or conversation history.
    const found = script
      .map((entry) => ({ entry, at: prompt.lastIndexOf(entry.question) }))
      .filter(({ entry, at }) => at >= 0 && (!entry.about || entry.about.test(prompt)))
      .sort((a, b) => Number(Boolean(b.entry.about)) - Number(Boolean(a.entry.about)) || b.at - a.at)[0]?.entry;
    const count = replyCounts.get(found) ?? 0;
    replyCounts.set(found, count + 1);
    const replies = found?.replies ?? ["no scripted reply"];
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
  // Disable the timeouts: a slow machine must not find its connection closed.
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
