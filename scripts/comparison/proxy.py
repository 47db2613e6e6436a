#!/usr/bin/env python3
"""Proxy between a system and the model, so that all systems are measured in the same way.

    proxy.py --model URL --cache FOLDER      forwards requests to an OpenAI-compatible server at URL (…/v1)
    proxy.py --script FILE                   replies with the entry of the file, {"NUMBER": {"text", "sql"}}, for the "(attack NUMBER)" of a question

Prints "url=…" once it listens (loopback, a free port). Implements OpenAI's chat protocol, with and without streaming, and
Ollama's /api/chat for systems that support no other local server.

Changes to requests: temperature 0, a fixed seed, and at most 1024 tokens unless the system asked for fewer, because a small
model that repeats itself would otherwise fill its context. Identical requests are answered from the cache. GET /log returns
for every request how long it took here, and how long the model took when it was not cached.
"""
import argparse, hashlib, json, os, re, threading, time, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MOST_TOKENS = 1024
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
lock, log = threading.Lock(), []


def settled(body):
    """Returns the request as sent to the model."""
    body = {**body, "temperature": 0, "seed": 1}
    limit = [body[k] for k in ("max_tokens", "max_completion_tokens") if body.get(k)]
    body.pop("max_completion_tokens", None)
    body["max_tokens"] = min([MOST_TOKENS, *limit])
    return body


def from_model(model, cache, path, body):
    """Returns (status, content type, bytes, seconds of the model, whether it was cached)."""
    text = json.dumps(body, sort_keys=True)
    kept = os.path.join(cache, hashlib.sha256(f"{path}\n{text}".encode()).hexdigest())
    if os.path.exists(kept):
        with open(kept, "rb") as f:
            head = json.loads(f.readline())
            return head["status"], head["type"], f.read(), head["seconds"], True
    # One request at a time, so that the measured time contains no queueing.
    with lock:
        start = time.monotonic()
        request = urllib.request.Request(model + path, text.encode(), {"Content-Type": "application/json"})
        try:
            with DIRECT.open(request, timeout=900) as reply:
                status, kind, data = reply.status, reply.headers["Content-Type"], reply.read()
        except urllib.error.HTTPError as e:
            status, kind, data = e.code, e.headers.get("Content-Type") or "application/json", e.read()
        seconds = time.monotonic() - start
    if status == 200:
        with open(kept + ".new", "wb") as f:
            f.write(json.dumps({"status": status, "type": kind, "seconds": seconds}).encode() + b"\n" + data)
        os.replace(kept + ".new", kept)
    return status, kind, data, seconds, False


def attack_of(body):
    """Returns the number in a question such as "How many orders are there? (attack 7)", anywhere in
    the request.
    """
    numbers = re.findall(r"\(attack (\d+)\)", json.dumps(body))
    return numbers[-1] if numbers else None


def scripted(script, body):
    """Returns the scripted text in OpenAI's format; as a call of the first tool that takes SQL, if
    tools are offered.
    """
    number = attack_of(body)
    said, tool = script[number]["text"] if number else "SELECT 1", None
    asked_before = any(m.get("role") == "tool" for m in body.get("messages", []))
    if number and body.get("tools") and not asked_before:
        for t in body["tools"]:
            if "sql" in (t["function"].get("parameters", {}).get("properties") or {}):
                tool = {"index": 0, "id": "call_1", "type": "function",
                        "function": {"name": t["function"]["name"], "arguments": json.dumps({"sql": script[number]["sql"]})}}
    elif body.get("tools"):
        said = "Done."
    message = {"role": "assistant", "content": None if tool else said, **({"tool_calls": [tool]} if tool else {})}
    reason = "tool_calls" if tool else "stop"
    common = {"id": "scripted", "created": 0, "model": body.get("model", "scripted")}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not body.get("stream"):
        whole = {**common, "object": "chat.completion", "usage": usage, "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        return 200, "application/json", json.dumps(whole).encode(), 0.0, True
    parts = [{**common, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
             {**common, "object": "chat.completion.chunk", "usage": usage, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}]
    data = "".join(f"data: {json.dumps(p)}\n\n" for p in parts) + "data: [DONE]\n\n"
    return 200, "text/event-stream", data.encode(), 0.0, True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; with Nagle's algorithm the second one would wait about 40 ms
    # on a persistent connection.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def do_GET(self):
        if self.path == "/log":
            self.send(200, "application/json", json.dumps(log).encode())
        elif self.server.options.script:
            self.send(200, "application/json", b'{"object":"list","data":[{"id":"qwen","object":"model"}]}')
        else:
            try:
                with DIRECT.open(self.server.options.model + self.path.removeprefix("/v1"), timeout=60) as reply:
                    self.send(reply.status, reply.headers["Content-Type"], reply.read())
            except urllib.error.HTTPError as e:
                self.send(e.code, "application/json", e.read())

    def do_POST(self):
        try:
            asked = json.loads(self.body())
        except ValueError:
            return self.send(400, "application/json", b'{"error":{"message":"not JSON"}}')
        # Clients that use this server as an HTTP proxy send absolute URLs.
        ollama = self.path.endswith("/api/chat")
        path = "/chat/completions" if ollama else self.path.removeprefix("/v1")
        body = {"model": asked.get("model"), "messages": asked["messages"]} if ollama else asked
        if path == "/chat/completions":
            body = settled(body)
        options, start = self.server.options, time.monotonic()
        status, kind, data, seconds, cached = scripted(self.server.script, body) if options.script else from_model(options.model, options.cache, path, body)
        log.append({"path": path, "seconds": seconds, "waited": time.monotonic() - start, "cached": cached, "status": status,
                    "attack": int(attack_of(body) or 0)})
        if ollama and status == 200:
            said = json.loads(data)["choices"][0]["message"]["content"] or ""
            kind, data = "application/json", json.dumps({"model": asked.get("model"), "done": True,
                                                         "message": {"role": "assistant", "content": said}}).encode()
        self.send(status, kind, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--cache")
    parser.add_argument("--script")
    options = parser.parse_args()
    if options.cache:
        os.makedirs(options.cache, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.options = options
    if options.script:
        with open(options.script) as f:
            server.script = json.load(f)
    print(f"url=http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
