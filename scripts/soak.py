#!/usr/bin/env python3
"""Soak test: a server under load while its database and its model fail. Checks for lost requests, recovery and memory leaks.

    scripts/soak.py [SECONDS]          default 300; requires target/release/querymend (or QUERYMEND, its path)

Uses a real PostgreSQL (scripts/engines.sh), `querymend serve` with an audit log, a local model that replies immediately, and
16 clients that ask continuously. The database is killed after a fifth and after three quarters of the time, and restarted
three seconds later; from 35 % on, the model returns status 500 for a fifth of the time. Half of the model's drafts require a
repair. At the end all of these must hold, or the exit code is 1:

- every answered request has its entries in the audit log, and every entry is complete;
- the circuit breakers of the database and of the model opened, and are closed;
- memory is flat: its median in the last fifth exceeds that after the first fifth by at most a tenth plus 8 MB;
- no request exceeded its time limit, was cut off or is still running;
- every connection to the database is idle again.

The last line is a JSON object with the figures.
"""
import collections
import http.client
import http.server
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 300.0
CLIENTS = 16
#: Time limit of a question in seconds, and the tolerance on a busy machine.
LIMIT, SLACK = 20, 5
RIGHT = "SELECT name FROM things WHERE id = 1"
BROKEN = "SELECT nmae, wieght FROM things ORDER BY id"


class Model(http.server.BaseHTTPRequestHandler):
    """OpenAI-compatible server. Every second draft has errors; while `fails` is set, it returns status
    500.
    """

    protocol_version = "HTTP/1.1"
    fails = None
    asked = 0

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if Model.fails.value:
            return self.send(500, "application/json", b'{"error": {"message": "out of order"}}')
        Model.asked += 1
        text = BROKEN if Model.asked % 2 else RIGHT
        piece = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        self.send(200, "text/event-stream", f"data: {json.dumps(piece)}\n\ndata: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())

    def send(self, status, kind, body):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def model(fails, port):
    """Separate process, so that clients and model do not block each other."""
    Model.fails = fails
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    port.value = server.server_port
    server.serve_forever()


class Clients:
    """Asks continuously and records the responses."""

    def __init__(self, port):
        self.port = port
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.answered = {}
        self.statuses = collections.Counter()
        self.took = []
        self.cut_off = []
        self.threads = [threading.Thread(target=self.ask, args=(n,), daemon=True) for n in range(CLIENTS)]

    def ask(self, client):
        connection, number = None, 0
        while not self.stop.is_set():
            number += 1
            request = f"soak-{client}-{number}"
            kind = ("ask", "ask", "ask", "run", "stream")[number % 5]
            path, body = ("/v1/run", {"sql": "SELECT count(*) AS n FROM things"}) if kind == "run" else ("/v1/ask", {"question": f"What is thing {number} called?"})
            headers = {"content-type": "application/json", "x-request-id": request}
            if kind == "stream":
                headers["accept"] = "text/event-stream"
            began = time.monotonic()
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT * 3)
                connection.request("POST", path, json.dumps(body), headers)
                response = connection.getresponse()
                data = response.read()
                if kind == "stream" and b"event: finished" not in data and b"event: problem" not in data:
                    raise http.client.HTTPException("the stream has no end")
            except (OSError, http.client.HTTPException) as error:
                connection = None
                with self.lock:
                    self.cut_off.append(f"{request}: {error!r}")
                continue
            took = time.monotonic() - began
            with self.lock:
                self.answered[request] = "run" if kind == "run" else "ask"
                self.statuses[f"{kind} {response.status}"] += 1
                self.took.append(took)
            # Back off after a rejected request.
            if response.status in (429, 503):
                time.sleep(0.05)


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    data = response.read().decode()
    connection.close()
    return data


def figure(text, name, **labels):
    total = None
    for line in text.splitlines():
        found = re.match(rf"{name}(?:\{{(.*)\}})? (\S+)$", line)
        if found and all(f'{key}="{value}"' in (found[1] or "") for key, value in labels.items()):
            total = (total or 0) + float(found[2])
    return total


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def engines(*arguments):
    return subprocess.run([ROOT / "scripts/engines.sh", *arguments], check=True, capture_output=True, text=True).stdout


def start(folder, database, port_of_model):
    config = folder / "querymend.yaml"
    config.write_text(
        f"budget: {{time: {LIMIT}s}}\n"
        "limits: {time: 10s}\n"
        "circuit_breaker: {timeout: 2s, max_timeout: 8s}\n"
        "memory: {enabled: false}\n"
        "server: {limits: {requests_per_minute: 0, max_concurrent_per_user: 2000, sessions: 100000}}\n"
    )
    binary = os.environ.get("QUERYMEND") or ROOT / "target/release/querymend"
    command = [binary, "serve", "--config", config, "--db", f"app={database}", "--bind", "127.0.0.1:0", "--audit", folder / "audit.jsonl", "--model", f"http://127.0.0.1:{port_of_model}/v1#scripted", "--log-format", "json"]
    log = folder / "log"
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "OPENAI_API_KEY": "none"}
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log.open("w"), env=environment)
    for _ in range(300):
        found = re.search(r"listening at http://127\.0\.0\.1:(\d+)", log.read_text())
        if found:
            return server, int(found[1]), log
        if server.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit(f"the server did not start:\n{log.read_text()}")


def run(folder, database):
    fails, port_of_model = multiprocessing.Value("b", 0), multiprocessing.Value("i", 0)
    process = multiprocessing.Process(target=model, args=(fails, port_of_model), daemon=True)
    process.start()
    while not port_of_model.value:
        time.sleep(0.01)
    server, port, log = start(folder, database, port_of_model.value)
    plan = [
        (0.20, "the database is killed", lambda: engines("kill", "postgres")),
        (0.20 + 3 / SECONDS, "and started again", lambda: engines("start", "postgres")),
        (0.35, "the model answers with status 500", lambda: setattr(fails, "value", 1)),
        (0.55, "and answers again", lambda: setattr(fails, "value", 0)),
        (0.75, "the database is killed", lambda: engines("kill", "postgres")),
        (0.75 + 3 / SECONDS, "and started again", lambda: engines("start", "postgres")),
    ]
    clients = Clients(port)
    samples, seen, began = [], collections.defaultdict(set), time.monotonic()
    try:
        for thread in clients.threads:
            thread.start()
        while (now := time.monotonic() - began) < SECONDS:
            while plan and now >= plan[0][0] * SECONDS:
                _, what, do = plan.pop(0)
                print(f"{now:5.0f} s  {what}", flush=True)
                do()
            samples.append((now, memory(server.pid)))
            for breaker in json.loads(get(port, "/v1/breakers")):
                seen[breaker["tool"]].add(breaker["state"])
            time.sleep(0.5)
        clients.stop.set()
        for thread in clients.threads:
            thread.join(LIMIT * 3)
        stuck = sum(thread.is_alive() for thread in clients.threads)
        for _ in range(50):
            figures = get(port, "/metrics")
            left = figure(figures, "querymend_requests_running"), figure(figures, "querymend_database_connections", state="busy")
            if left == (0, 0):
                break
            time.sleep(0.1)
        breakers = json.loads(get(port, "/v1/breakers"))
    finally:
        server.terminate()
        code = server.wait(60)
        process.terminate()
    return clients, samples, seen, stuck, figures, left, breakers, code, log.read_text()


def main():
    wrong = []

    def hold(what, fine):
        if not fine:
            wrong.append(what)

    address = re.search(r"QUERYMEND_TEST_POSTGRES='(.*)'", engines("up", "postgres"))[1]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clients, samples, seen, stuck, figures, left, breakers, code, log = run(folder, address)
        lines, broken = collections.defaultdict(list), 0
        for line in (folder / "audit.jsonl").read_text().splitlines():
            try:
                entry = json.loads(line)
                lines[entry["request_id"]].append(entry["action"])
            except ValueError:
                broken += 1
    lost = [request for request, action in clients.answered.items() if action not in lines[request]]
    hold(f"{len(lost)} requests were answered and are not in the audit log, such as {lost[:3]}", not lost)
    hold(f"{broken} lines of the audit log are broken", not broken)
    hold(f"there are {len(breakers)} breakers", len(breakers) == 2)
    for breaker in breakers:
        hold(f"{breaker['tool']} opened {breaker['opens']} times and is {breaker['state']}", breaker["opens"] > 0 and breaker["state"] == "closed")
    median = lambda begin, end: statistics.median(size for at, size in samples if begin * SECONDS <= at <= end * SECONDS)
    early, late = median(0.2, 0.4), median(0.8, 1.0)
    hold(f"memory grew from {early:.0f} to {late:.0f} MB", late <= early * 1.1 + 8)
    took = sorted(clients.took)
    hold(f"the longest request took {took[-1]:.1f} s", took[-1] <= LIMIT + SLACK)
    hold(f"{len(clients.cut_off)} requests were cut off, such as {clients.cut_off[:3]}", not clients.cut_off)
    hold(f"{stuck} clients still wait", not stuck)
    hold(f"(requests, connections) that are left: {left}", left == (0, 0))
    hold(f"the server ended with {code}", code == 0)
    hold("the log tells of a panic", "panicked" not in log)
    print(json.dumps({
        "seconds": SECONDS,
        "clients": CLIENTS,
        "requests": len(took),
        "per_second": round(len(took) / SECONDS),
        "statuses": dict(sorted(clients.statuses.items())),
        "audit_lines": sum(map(len, lines.values())),
        "lost": len(lost),
        "p50_ms": round(took[len(took) // 2] * 1e3, 1),
        "p99_ms": round(took[len(took) * 99 // 100] * 1e3, 1),
        "longest_s": round(took[-1], 1),
        "memory_mb": [round(early, 1), round(late, 1), round(max(size for _, size in samples), 1)],
        "breaker_opens": {one["tool"]: one["opens"] for one in breakers},
        "idle_connections": figure(figures, "querymend_database_connections", state="idle"),
        "wrong": wrong,
    }))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
