#!/usr/bin/env python3
"""Measures the throughput of the server, compared with a hello-world server and with FastAPI and LangGraph.

    python3 -m venv VENV && VENV/bin/pip install fastapi uvicorn langgraph
    VENV/bin/python scripts/server_speed.py        # requires wrk (Debian: apt install wrk)

wrk sends requests over 32 connections to each server in turn, on the same machine. The model replies immediately with a
query that refers to an unknown column: Querymend repairs it, while the peer asks its model again with the error. Then 1,000
questions are asked concurrently as event streams: how many complete, and how much memory a stream takes.
"""
import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = int(os.environ.get("SECONDS", "8"))
OURS, HELLO, THEIRS = 18642, 18643, 18644
BROKEN = "SELECT id, price FROM products WHERE category = 'Electronics'"
RIGHT = "SELECT product_id, price FROM products WHERE category = 'Electronics'"


def wrk(url, body=None, path="/"):
    script = ""
    if body:
        script = f'wrk.method = "POST"\nwrk.body = {json.dumps(json.dumps(body))}\nwrk.headers["content-type"] = "application/json"\n'
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        out = subprocess.run(["wrk", "-t1", "-c32", f"-d{SECONDS}s", "--latency", "-s", file.name, url + path], capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    tail = re.search(r"^ +99%\s+(\S+)", out, re.M)[1]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    return rate, tail, int(bad[1]) if bad else 0


def wait_for(port):
    import socket
    for _ in range(300):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    sys.exit(f"error: no server listens at {port}")


def app():
    """The same pipeline with FastAPI and LangGraph: link, generate, review, execute, retry."""
    from fastapi import FastAPI
    from pydantic import BaseModel

    sys.path.insert(0, str(ROOT / "crates/core/benches"))
    import langgraph_loop as loop

    loop.FIRST, loop.SECOND = BROKEN, RIGHT
    database = sqlite3.connect(os.environ["SHOP"], check_same_thread=False)
    schema = "\n".join(sql for (sql,) in database.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"))
    graph = loop.graph_of(database, schema)
    api = FastAPI()

    class Question(BaseModel):
        question: str

    @api.post("/v1/ask")
    async def ask(question: Question):
        state = graph.invoke({"question": question.question, "max_attempts": 3})
        return {"sql": state["sql"], "rows": state["rows"], "attempts": state["attempt"]}

    return api


def memory(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


async def stream(body):
    reader, writer = await asyncio.open_connection("127.0.0.1", OURS)
    text = json.dumps(body)
    writer.write(f"POST /v1/ask HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode())
    data = await reader.read()
    writer.close()
    return b"event: finished" in data and b'"status":"answered"' in data


async def streams(pid, count):
    before, most = memory(pid), 0

    async def watch():
        nonlocal most
        while True:
            most = max(most, memory(pid))
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    done = await asyncio.gather(*(stream({"question": "Which electronics are there?"}) for _ in range(count)))
    watching.cancel()
    return sum(done), max(0, most - before) / count


def measure(instant, querymend):
    """Returns requests per second, p99 and the number of non-2xx responses for hello, Querymend and
    the peer; completed streams, kB per stream.
    """
    ours = subprocess.Popen([instant, str(OURS), str(HELLO)], stdout=subprocess.DEVNULL)
    theirs = None
    try:
        wait_for(OURS)
        body = {"question": "Which electronics are there, at what price?"}
        wrk(f"http://127.0.0.1:{OURS}", body, "/v1/ask")
        figures = {"hello": wrk(f"http://127.0.0.1:{HELLO}"), "ours": wrk(f"http://127.0.0.1:{OURS}", body, "/v1/ask")}
        figures["streams"] = asyncio.run(streams(ours.pid, 1000))
        with tempfile.TemporaryDirectory() as folder:
            shop = os.path.join(folder, "shop.db")
            subprocess.run([querymend, "demo", shop], check=True, capture_output=True)
            theirs = subprocess.Popen([sys.executable, "-m", "uvicorn", "--factory", "server_speed:app", "--port", str(THEIRS), "--log-level", "error"], cwd=ROOT / "scripts", env={**os.environ, "SHOP": shop})
            wait_for(THEIRS)
            figures["peer"] = wrk(f"http://127.0.0.1:{THEIRS}", body, "/v1/ask")
        return figures
    finally:
        for process in (ours, theirs):
            if process:
                process.terminate()
                process.wait(30)


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--release", "--workspace", "--example", "instant", "--bin", "querymend"], cwd=ROOT, check=True)
    figures = measure(target / "release/examples/instant", target / "release/querymend")
    print("| server | requests a second | p99 | not 2xx |\n|---|---|---|---|")
    for name, which in (("axum, hello", "hello"), ("Querymend, /v1/ask with one correction", "ours"), ("FastAPI with LangGraph, the same", "peer")):
        rate, tail, bad = figures[which]
        print(f"| {name} | {rate:,.0f} | {tail} | {bad} |")
    (mine, *_), (hello, *_), (peer, *_) = figures["ours"], figures["hello"], figures["peer"]
    print(f"\nQuerymend takes {mine / peer:.0f} times as many as FastAPI with LangGraph, and {100 * mine / hello:.0f} % of hello.")
    ended, kilobytes = figures["streams"]
    print(f"1,000 streams at once: {ended} ended with their answer, {kilobytes:.0f} kB of memory each at most.")


if __name__ == "__main__":
    main()
